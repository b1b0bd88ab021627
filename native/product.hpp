// A product of sparse factors, packed for the kernels, and the threads that drive them over many rows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// A factor in compressed sparse rows, or (indptr == nullptr) all of its values row by row.
template <class T>
struct FactorSource {
    std::int64_t n_rows;
    std::int64_t n_columns;
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const T* values;

    std::int64_t begin(std::int64_t row) const { return indptr ? indptr[row] : row * n_columns; }
    std::int64_t length(std::int64_t row) const { return begin(row + 1) - begin(row); }
    T value(std::int64_t row, std::int64_t entry) const { return values[begin(row) + entry]; }
    std::uint32_t column(std::int64_t row, std::int64_t entry) const {
        return std::uint32_t(indptr ? indices[begin(row) + entry] : entry);
    }
};

// A factor in the form that the kernels read (see Slice): rows of equal length next to each other, so that the length
// of the inner loop hardly ever surprises the processor.
template <class T>
class PackedFactor {
  public:
    explicit PackedFactor(const FactorSource<T>& source);
    FactorView<T> view() const;
    std::int64_t n_rows() const { return n_rows_; }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t macs() const { return macs_; }
    double largest_row_sum() const { return largest_row_sum_; }  // of absolute values

  private:
    void add_slice(const FactorSource<T>& source, const std::int32_t* rows, int n);
    std::int64_t n_rows_;
    std::int64_t n_columns_;
    std::int64_t macs_ = 0;
    double largest_row_sum_ = 0;
    std::vector<Slice> slices_;
    std::vector<std::int64_t> windows_;
    std::vector<std::uint32_t> columns_, lane_columns_;
    std::vector<T> values_, lane_values_;
};

template <class T>
class Product {
  public:
    // `factors` from left to right, S_1 first; `isa` is empty for the best the machine has.
    Product(const std::vector<FactorSource<T>>& factors, const std::string& isa);

    // The product of S_1 alone, for vectors that the other factors have been applied to. It shares the factor.
    Product first_factor() const { return Product({factors_.back()}, kernels_); }

    // Run the job (its factors and limit are filled in here). Returns -1, or the first of the rows among which one
    // could not be compared: it held a NaN or an infinity, or numbers so large that products might overflow. `poll` is
    // called now and then on the calling thread; what it throws stops the work and is passed on.
    // `growth` bounds |<x, c>| by the largest |x_j|, for all centres c of the job.
    std::int64_t run(Job<T> job, double growth, int n_threads, const std::function<void()>& poll) const;

    // The same for a job that settles.
    std::int64_t settle(SettleJob<T> job, double growth, int n_threads, const std::function<void()>& poll) const;

    // The same for Gaussian kernel values.
    std::int64_t gaussian(GaussianJob<T> job, int n_threads, const std::function<void()>& poll) const;

    std::int64_t n_rows() const { return factors_.back()->n_rows(); }
    std::int64_t n_columns() const { return factors_.front()->n_columns(); }
    const char* isa() const { return kernels_->name; }

  private:
    using Factors = std::vector<std::shared_ptr<const PackedFactor<T>>>;
    Product(Factors factors, const Kernels<T>* kernels);
    using TileCall = std::function<bool(const Range&, int lanes, const Workspace<T>&)>;
    using RowCall = std::function<bool(std::int64_t, const Workspace<T>&)>;
    void complete(Job<T>& job, double growth) const;
    static void leave_room_for_squares(Job<T>& job, std::int64_t n_columns);
    std::int64_t run_rows(std::int64_t n, std::int64_t line, std::int64_t n_listed, const RowCall& call) const;
    std::int64_t run_tiles(std::int64_t n, std::int64_t line, std::int64_t n_listed, int n_threads,
                           const TileCall& call, const std::function<void()>& poll) const;
    int lanes_for(std::int64_t n, std::int64_t n_listed, int n_threads) const;
    Factors factors_;  // in the order of application; copies of a product share them
    std::vector<FactorView<T>> views_;
    const Kernels<T>* kernels_;
    std::int64_t front_ = 0, back_ = 0;  // widest tiles on either side of the walk
    std::int64_t macs_ = 0;
    double growth_ = 1;  // no product exceeds the largest |x| by more than this factor
};

}  // namespace quickmeans
