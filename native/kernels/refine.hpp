// Least squares for one factor S of a product on its support, by conjugate gradients.
//
//     minimise  <S, P S G> - 2 <M, S>   over the entries in the support.
//
// With E entries, a step takes E (n_rows + n_columns) multiply-adds: first Y = S G, then P Y on the support alone.
#pragma once

#include "sparse.hpp"

namespace quickmeans::QM_ISA {

inline double dot(const double* a, const double* b, std::int64_t n) {
    constexpr int kStep = 2 * kWidth<double>;
    Vec<double> even = {}, odd = {};
    std::int64_t i = 0;
    for (; i + kStep <= n; i += kStep) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + kWidth<double>) * load(b + i + kWidth<double>);
    }
    even += odd;
    double sum = 0;
    for (int l = 0; l < kWidth<double>; ++l) sum += even[l];
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

// target = the transpose of a, which is n x m, in blocks that stay in the cache.
inline void transpose(const double* a, std::int64_t n, std::int64_t m, double* target) {
    constexpr std::int64_t kBlock = 16;
    for (std::int64_t i0 = 0; i0 < n; i0 += kBlock)
        for (std::int64_t j0 = 0; j0 < m; j0 += kBlock)
            for (std::int64_t j = j0; j < (j0 + kBlock < m ? j0 + kBlock : m); ++j)
                for (std::int64_t i = i0; i < (i0 + kBlock < n ? i0 + kBlock : n); ++i)
                    target[j * n + i] = a[i * m + j];
}

// Y = S G, then (P Y)_ij as the product of row i of P and column j of Y.
inline void apply_both(const RefineJob& job, const double* s, double* out, Pacer& pacer) {
    const std::int64_t n = job.n_rows, m = job.n_columns;
    sparse_times({n, job.row_start, job.column, s, job.G, m, job.dense}, pacer.poll);
    transpose(job.dense, n, m, job.dense + n * m);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t e = job.row_start[i]; e < job.row_start[i + 1]; ++e) {
            out[e] = dot(job.P + i * n, job.dense + n * m + std::int64_t(job.column[e]) * n, n);
            pacer.did(n);
        }
}

// P S couples the entries of a column.
inline void apply_left(const RefineJob& job, const double* s, double* out, Pacer& pacer) {
    for (std::int64_t j = 0; j < job.n_columns; ++j)
        for (std::int64_t a = job.column_start[j]; a < job.column_start[j + 1]; ++a) {
            const std::int64_t e = job.by_column[a];
            const double* const p = job.P + std::int64_t(job.row[e]) * job.n_rows;
            double sum = 0;
            for (std::int64_t b = job.column_start[j]; b < job.column_start[j + 1]; ++b)
                sum += p[job.row[job.by_column[b]]] * s[job.by_column[b]];
            out[e] = sum;
            pacer.did(job.column_start[j + 1] - job.column_start[j]);
        }
}

// N S G with diagonal N couples the entries of a row.
inline void apply_right(const RefineJob& job, const double* s, double* out, Pacer& pacer) {
    for (std::int64_t i = 0; i < job.n_rows; ++i)
        for (std::int64_t e = job.row_start[i]; e < job.row_start[i + 1]; ++e) {
            const double* const g = job.G + std::int64_t(job.column[e]) * job.n_columns;
            double sum = 0;
            for (std::int64_t f = job.row_start[i]; f < job.row_start[i + 1]; ++f) sum += g[job.column[f]] * s[f];
            out[e] = job.diagonal[i] * sum;
            pacer.did(job.row_start[i + 1] - job.row_start[i]);
        }
}

// P S G on the support.
inline void apply_on_support(const RefineJob& job, const double* s, double* out, Pacer& pacer) {
    if (job.P && job.G)
        apply_both(job, s, out, pacer);
    else if (job.P)
        apply_left(job, s, out, pacer);
    else if (job.G)
        apply_right(job, s, out, pacer);
    else
        for (std::int64_t e = 0; e < job.n_entries; ++e) out[e] = job.diagonal[job.row[e]] * s[e];
}

// n_steps steps, preconditioned by the diagonal. OUT <M, S> and <S, P S G> after them.
inline void refine(const RefineJob& job, double* inner, double* square, const Poll& poll) {
    Pacer pacer{poll};
    const std::int64_t E = job.n_entries;
    double *const s = job.values, *const r = job.work, *const p = r + E, *const q = p + E;
    apply_on_support(job, s, q, pacer);
    for (std::int64_t e = 0; e < E; ++e) r[e] = job.target[e] - q[e];
    double rz = 0;
    for (std::int64_t e = 0; e < E; ++e) {
        p[e] = r[e] / job.curvature[e];
        rz += r[e] * p[e];
    }
    for (int step = 0; step < job.n_steps && rz > 0; ++step) {
        apply_on_support(job, p, q, pacer);
        const double bend = dot(p, q, E);
        if (!(bend > 0)) break;
        const double length = rz / bend;
        double next = 0;
        for (std::int64_t e = 0; e < E; ++e) {
            s[e] += length * p[e];
            r[e] -= length * q[e];
            next += r[e] * r[e] / job.curvature[e];
        }
        for (std::int64_t e = 0; e < E; ++e) p[e] = r[e] / job.curvature[e] + next / rz * p[e];
        rz = next;
    }
    *inner = dot(s, job.target, E);
    *square = *inner - dot(s, r, E);
}

}  // namespace quickmeans::QM_ISA
