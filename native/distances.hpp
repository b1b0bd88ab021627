// Distances of rows from centers, on several threads. The number of threads changes no bit.
#pragma once

#include <new>
#include <string>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// Memory that begins with a line of the cache, so that no vector of a panel lies in two lines.
template <class T>
struct AlignedMemory {
    using value_type = T;
    static constexpr std::align_val_t kAlignment{64};
    AlignedMemory() = default;
    template <class U>
    AlignedMemory(const AlignedMemory<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }
    template <class U>
    bool operator==(const AlignedMemory<U>&) const {
        return true;
    }
};
template <class T>
using AlignedVector = std::vector<T, AlignedMemory<T>>;

// Centers, packed for the distances of rows from all of them.
template <class T>
class Distances {
  public:
    // The mean is what rows and centers are taken about; any vector near them will do. With `spherical` it is not used,
    // and rows are divided by their lengths.
    Distances(const T* centers, std::int64_t n_centers, std::int64_t n_columns, const double* mean, bool spherical,
              const std::string& isa, const Poll& poll);

    // The distances of all rows, as T or, with `narrow`, as float32. Returns -1, or the first row of a range that has a
    // row with a NaN, an infinity, numbers whose squares overflow, or with `spherical` no direction.
    std::int64_t run(const RowsView& rows, void* out, bool narrow, int n_threads, const Poll& poll) const;

    std::int64_t n_centers() const { return n_centers_; }
    std::int64_t n_columns() const { return n_columns_; }

  private:
    void pack(std::int64_t first, std::int64_t count, std::int64_t panel);
    DistanceJob<T> job(const RowsView& rows, void* out, bool narrow) const;

    std::int64_t n_centers_, n_columns_;
    bool spherical_, by_differences_;
    const InstructionSet* set_;
    AlignedVector<T> centers_, mean_, panels_, squares_;
};

// Squared distances from the own centers; see DifferenceJob.
void squared_differences(const DifferenceJob& job, const InstructionSet& set, int n_threads, const Poll& poll);

}  // namespace quickmeans
