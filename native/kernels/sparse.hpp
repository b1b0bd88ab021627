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
            const double* const x = job.X + std::int64_t(job.index[e]) * job.stride + first;
            for (int v = 0; v < Vectors; ++v) sums[v] += job.values[e] * load(x + v * kWidth<double>);
        }
        for (int v = 0; v < Vectors; ++v) store(job.out + i * job.stride + first + v * kWidth<double>, sums[v]);
        pacer.did((job.start[i + 1] - job.start[i] + 1) * Vectors * kWidth<double>);
    }
}

// Columns from `first` on, `Vectors` at a time, then half as many; returns the first that is left.
template <int Vectors>
inline std::int64_t sparse_panels(const SparseJob& job, std::int64_t first, Pacer& pacer) {
    for (; first + Vectors * kWidth<double> <= job.end; first += Vectors * kWidth<double>)
        sparse_columns<Vectors>(job, first, pacer);
    if constexpr (Vectors > 1) first = sparse_panels<Vectors / 2>(job, first, pacer);
    return first;
}

inline void sparse_times(const SparseJob& job, const Poll& poll) {
    Pacer pacer{poll};
    sparse_panels<8>(job, job.first, pacer);  // half of the sixteen registers for sums, the others for loads
}

}  // namespace quickmeans::QM_ISA
