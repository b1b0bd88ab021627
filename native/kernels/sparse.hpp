// A sparse matrix times a dense one.
#pragma once

#include "types.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

// So many vectors of columns from `first` on, their sums in registers.
template <int Vectors>
inline void sparse_columns(const SparseJob& job, std::int64_t first) {
    for (std::int64_t i = 0; i < job.n_rows; ++i) {
        Vec<double> sums[Vectors] = {};
        for (std::int64_t e = job.start[i]; e < job.start[i + 1]; ++e) {
            const double* const x = job.X + std::int64_t(job.index[e]) * job.width + first;
            for (int v = 0; v < Vectors; ++v) sums[v] += job.values[e] * load(x + v * kWidth<double>);
        }
        for (int v = 0; v < Vectors; ++v) store(job.out + i * job.width + first + v * kWidth<double>, sums[v]);
    }
}

inline void sparse_column(const SparseJob& job, std::int64_t j) {
    for (std::int64_t i = 0; i < job.n_rows; ++i) {
        double sum = 0;
        for (std::int64_t e = job.start[i]; e < job.start[i + 1]; ++e)
            sum += job.values[e] * job.X[std::int64_t(job.index[e]) * job.width + j];
        job.out[i * job.width + j] = sum;
    }
}

inline void sparse_times(const SparseJob& job) {
    constexpr int kMany = 8;
    std::int64_t j = 0;
    for (; j + kMany * kWidth<double> <= job.width; j += kMany * kWidth<double>) sparse_columns<kMany>(job, j);
    for (; j + kWidth<double> <= job.width; j += kWidth<double>) sparse_columns<1>(job, j);
    for (; j < job.width; ++j) sparse_column(job, j);
}

}  // namespace quickmeans::QM_ISA
