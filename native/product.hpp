// A product of sparse factors, packed for the kernels, and the loop over all rows of a job.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// A factor in compressed sparse rows, or (indptr == nullptr) all its values in row order.
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

// A factor in the form that the kernels read (see Slice). Within a window rows are sorted by length, so that the
// processor predicts the length of the inner loop.
template <class T>
class PackedFactor {
  public:
    PackedFactor(const FactorSource<T>& source, const Poll& poll);
    FactorView<T> view() const;
    std::int64_t n_rows() const { return n_rows_; }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t macs() const { return macs_; }
    double largest_row_sum() const { return largest_row_sum_; }  // of the absolute values

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
    // `factors` from left to right, S_1 first; `isa` is empty for the best instruction set of the machine.
    Product(const std::vector<FactorSource<T>>& factors, const std::string& isa, const Poll& poll);

    // The product of S_1 alone, for vectors that the other factors have been applied to. It shares the factor.
    Product first_factor() const { return Product({factors_.back()}, set_); }

    // Run a job; its factors and limit are filled in here. Returns -1, or the first row of the first tile with a row
    // that could not be compared: it had a NaN or an infinity, or numbers so large that products might overflow. `poll`
    // is called now and then on the calling thread; what it throws ends the work and is passed on.
    // `growth` is a bound of |<x, c>| over the largest |x_j|, for all centers c of the job.
    std::int64_t run(ProductJob<T> job, double growth, int n_threads, const Poll& poll) const;
    std::int64_t run(SettleJob<T> job, double growth, int n_threads, const Poll& poll) const;
    std::int64_t run(GaussianJob<T> job, int n_threads, const Poll& poll) const;

    std::int64_t n_rows() const { return factors_.back()->n_rows(); }
    std::int64_t n_columns() const { return factors_.front()->n_columns(); }
    const char* isa() const { return set_->name; }

  private:
    using Factors = std::vector<std::shared_ptr<const PackedFactor<T>>>;
    // Of a job: its rows, the length of Workspace::line and the number of candidates per row.
    struct Size {
        std::int64_t n_rows, line, n_listed;
    };
    Product(Factors factors, const InstructionSet* set);
    void complete(ProductJob<T>& job, double growth) const;
    static void limit_squares(ProductJob<T>& job, std::int64_t n_columns);
    template <class Job>
    std::int64_t drive(const Job& job, const RowKernel<T, Job>& kernel, const Size& size, int n_threads,
                       const Poll& poll) const;
    int lanes_for(std::int64_t n, std::int64_t n_listed, int n_threads) const;

    Factors factors_;  // in the order of application; copies of a product share them
    std::vector<FactorView<T>> views_;
    const InstructionSet* set_;
    std::int64_t front_ = 0, back_ = 0;  // the widths of Workspace::front and back
    std::int64_t macs_ = 0;
    double growth_ = 1;  // no product exceeds the largest |x_j| by more than this factor
};

}  // namespace quickmeans
