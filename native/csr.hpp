// Rows in CSR form: checks, moments, norms, distances, starting points. The number of threads changes no bit.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/types.hpp"
#include "pages.hpp"

namespace quickmeans {

// The entries of all rows with their types.
template <class V, class I>
struct CsrEntries {
    const I* starts;
    const I* columns;
    const V* values;
    std::int64_t begin(std::int64_t row) const { return std::int64_t(starts[row]); }
    std::int64_t end(std::int64_t row) const { return std::int64_t(starts[row + 1]); }
};

// function(entries), with the types that the rows have.
template <class Function>
auto with_entries(const CsrView& x, const Function& function) {
    const auto entries = [&]<class V, class I>(V, I) {
        return CsrEntries<V, I>{static_cast<const I*>(x.starts), static_cast<const I*>(x.columns),
                                static_cast<const V*>(x.values)};
    };
    if (x.wide_values)
        return x.wide_columns ? function(entries(double(), std::int64_t()))
                              : function(entries(double(), std::int32_t()));
    return x.wide_columns ? function(entries(float(), std::int64_t())) : function(entries(float(), std::int32_t()));
}

std::int64_t n_entries(const CsrView& rows);
// Throws std::invalid_argument if an index is out of range. Returns whether the columns of every row are different, as
// all functions below need them.
bool check_csr(const CsrView& rows, std::int64_t n_stored, const Poll& poll);

// How many threads are worth their start for so many multiply-adds.
int csr_threads(double multiply_adds, int n_threads);

// Centers that are kept column by column for the kernels.
template <class T>
class CsrCenters {
  public:
    CsrCenters(std::int64_t n_centers, std::int64_t n_columns, const InstructionSet& set);
    T* column(std::int64_t d) { return values_.data() + d * stride_; }
    const T* column(std::int64_t d) const { return values_.data() + d * stride_; }
    T* offset() { return offset_.data(); }
    std::int64_t n_centers() const { return n_centers_; }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t stride() const { return stride_; }
    const InstructionSet& set() const { return *set_; }
    CsrTable<T> table() const { return {column(0), offset_.data(), n_columns_, n_centers_, stride_}; }
    // Take centers of n_centers x n_columns and their offsets.
    template <class S>
    void fill(const S* centers, const double* offset, int n_threads, const Poll& poll);

  private:
    std::int64_t n_centers_, n_columns_, stride_;
    const InstructionSet* set_;
    std::vector<T, PageAllocator<T>> values_;
    std::vector<T> offset_;
};

// Labels of all rows, and scores unless null. Returns -1, or the first row whose scores are not finite.
template <class T>
std::int64_t csr_nearest(const CsrView& rows, const CsrCenters<T>& centers, std::int32_t* labels, T* best, T* second,
                         int n_threads, const Poll& poll);

// Per column the weighted sum of the entries, or, with a mean, of (x - mean)^2 over all rows, entries or not. `weights`
// is null for ones.
void csr_sums(const CsrView& rows, const double* weights, double* sums, const Poll& poll);
void csr_squares(const CsrView& rows, const double* weights, const double* mean, double* squares, const Poll& poll);

// |x - mean|^2 of every row.
void csr_norms(const CsrView& rows, const double* mean, double* norms, int n_threads, const Poll& poll);

// How rows are compared with centers: |x - m - c|^2, or |x / |x| - c|^2 with m = 0 if spherical; see csr_norms.
struct CsrGeometry {
    const double* mean;     // n_columns
    const double* norms;    // one per row
    const double* centers;  // n_centers x n_columns
    std::int64_t n_centers;
    bool spherical;
};
// The squared distances of all rows from the centers of their labels. Small ones are accurate too.
void csr_own_squares(const CsrView& rows, const CsrGeometry& geometry, const std::int32_t* labels, double* squares,
                     int n_threads, const Poll& poll);
// The distances of all rows from all centers, n_rows x n_centers of Out.
template <class Out>
void csr_distances(const CsrView& rows, const CsrGeometry& geometry, const InstructionSet& set, Out* out, int n_threads,
                   const Poll& poll);

// k-means++ among the rows that the index names; see seeding.hpp. The rows chosen are positions in the index.
std::int64_t csr_seed(const CsrView& rows, const std::int64_t* index, std::int64_t n, const double* weights,
                      std::int64_t first, const double* uniforms, std::int64_t n_centers, std::int64_t n_trials,
                      std::int64_t* chosen, const InstructionSet& set, int n_threads, const Poll& poll);

}  // namespace quickmeans
