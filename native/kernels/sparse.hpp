// A sparse matrix times a dense one.
#pragma once

#include "pacer.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

// `Vectors` vectors of columns from `first` on, with their sums in registers.
template <int Vectors>
inline void sparse_columns(const SparseJob& job, std::int64_t first, Pacer& pacer) {
    for (std::int64_t i = 0; i < job.n_rows; ++i) {
        Vec<double> sums[Vectors] = {};
        for (std::int64_t e = job.start[i]; e < job.start[i + 1]; ++e) {
            const double* const x = job.X + std::int64_t(job.index[e]) * job.width + first;
            for (int v = 0; v < Vectors; ++v) sums[v] += job.values[e] * load(x + v * kWidth<double>);
        }
        for (int v = 0; v < Vectors; ++v) store(job.out + i * job.width + first + v * kWidth<double>, sums[v]);
        pacer.did((job.start[i + 1] - job.start[i] + 1) * Vectors * kWidth<double>);
    }
}

inline void sparse_column(const SparseJob& job, std::int64_t j, Pacer& pacer) {
    for (std::int64_t i = 0; i < job.n_rows; ++i) {
        double sum = 0;
        for (std::int64_t e = job.start[i]; e < job.start[i + 1]; ++e)
            sum += job.values[e] * job.X[std::int64_t(job.index[e]) * job.width + j];
        job.out[i * job.width + j] = sum;
        pacer.did(job.start[i + 1] - job.start[i] + 1);
    }
}

inline void sparse_times(const SparseJob& job, const Poll& poll) {
    constexpr int kVectors = 8;  // half of the sixteen registers for sums, the others for loads
    Pacer pacer{poll};
    std::int64_t j = 0;
    for (; j + kVectors * kWidth<double> <= job.width; j += kVectors * kWidth<double>)
        sparse_columns<kVectors>(job, j, pacer);
    for (; j + kWidth<double> <= job.width; j += kWidth<double>) sparse_columns<1>(job, j, pacer);
    for (; j < job.width; ++j) sparse_column(job, j, pacer);
}

}  // namespace quickmeans::QM_ISA
