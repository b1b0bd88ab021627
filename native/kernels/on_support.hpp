// A factor S of a product on its support: what palm4MSA computes of P S G and L' H, and the dense matrices between.
// Rows of dense matrices are `padded` (see solver_types.hpp), with zeros after their entries.
#pragma once

#include "sparse.hpp"

namespace quickmeans::QM_ISA {

constexpr int kGathered = 4;  // an entry by its index takes as long as this many of a row of vectors

// The product of two rows of n entries, which a whole number of vectors covers.
inline double dot_of_vectors(const double* a, const double* b, std::int64_t n) {
    constexpr int W = kWidth<double>, kSums = 4;
    Vec<double> sums[kSums] = {};
    std::int64_t i = 0;
    for (; i + kSums * W <= n; i += kSums * W)
        for (int v = 0; v < kSums; ++v) sums[v] += load(a + i + v * W) * load(b + i + v * W);
    for (; i < n; i += W) sums[0] += load(a + i) * load(b + i);
    const Vec<double> all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double sum = 0;
    for (int l = 0; l < W; ++l) sum += all[l];
    return sum;
}

// The products of four rows with n values, at these positions of the rows.
inline void gathered_dots(const double* const (&rows)[4], const std::int32_t* at, const double* values, std::int64_t n,
                          double (&sums)[4]) {
    for (double& sum : sums) sum = 0;
    for (std::int64_t b = 0; b < n; ++b)  // four sums, so that no addition waits for the last
        for (int u = 0; u < 4; ++u) sums[u] += rows[u][at[b]] * values[b];
}

// out[e] = the product of row `row[e]` of A and row `column[e]` of B, for entries e of these rows of the support.
inline void support_dots(const SupportView& support, const double* A, const double* B, std::int64_t length,
                         const Range& rows, double* out, const Poll& poll) {
    Pacer pacer{poll};
    const std::int64_t stride = padded(length), n = whole_vectors(length);
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i)
        for (std::int64_t e = support.row_start[i]; e < support.row_start[i + 1]; ++e) {
            out[e] = dot_of_vectors(A + i * stride, B + std::int64_t(support.column[e]) * stride, n);
            pacer.did(length);
        }
}

// out = P S on the support: it couples the entries of a column. `line` holds padded(n_rows) zeros and as many more.
inline void left_on_support(const SupportView& support, const double* P, const double* s, double* line, double* out,
                            const Poll& poll) {
    Pacer pacer{poll};
    const std::int64_t stride = padded(support.n_rows), n = whole_vectors(support.n_rows);
    double* const values = line + stride;
    for (std::int64_t j = 0; j < support.n_columns; ++j) {
        const std::int64_t* const entry = support.by_column + support.column_start[j];
        const std::int32_t* const row = support.row_by_column + support.column_start[j];
        const std::int64_t count = support.column_start[j + 1] - support.column_start[j];
        const bool gather = kGathered * count <= n;
        for (std::int64_t a = 0; a < count; ++a) (gather ? values[a] : line[row[a]]) = s[entry[a]];
        const auto row_of_P = [&](std::int64_t a) { return P + std::int64_t(row[a < count ? a : count - 1]) * stride; };
        for (std::int64_t a = 0; gather && a < count; a += 4) {
            double sums[4];
            gathered_dots({row_of_P(a), row_of_P(a + 1), row_of_P(a + 2), row_of_P(a + 3)}, row, values, count, sums);
            for (std::int64_t u = 0; u < 4 && a + u < count; ++u) out[entry[a + u]] = sums[u];
        }
        for (std::int64_t a = 0; a < count && !gather; ++a) out[entry[a]] = dot_of_vectors(row_of_P(a), line, n);
        for (std::int64_t a = 0; a < count && !gather; ++a) line[row[a]] = 0;
        pacer.did(count * count);
    }
}

// out = N S G on the support with a diagonal N: it couples the entries of a row.
inline void right_on_support(const SupportView& support, const double* diagonal, const double* G, const double* s,
                             double* out, const Poll& poll) {
    Pacer pacer{poll};
    for (std::int64_t i = 0; i < support.n_rows; ++i) {
        const std::int64_t first = support.row_start[i], end = support.row_start[i + 1];
        const auto row_of_G = [&](std::int64_t e) {
            return G + std::int64_t(support.column[e < end ? e : end - 1]) * padded(support.n_columns);
        };
        for (std::int64_t e = first; e < end; e += 4) {
            double sums[4];
            gathered_dots({row_of_G(e), row_of_G(e + 1), row_of_G(e + 2), row_of_G(e + 3)}, support.column + first,
                          s + first, end - first, sums);
            for (std::int64_t u = 0; u < 4 && e + u < end; ++u) out[e + u] = diagonal[i] * sums[u];
        }
        pacer.did((end - first) * (end - first));
    }
}

// out = the transpose of a, which is n x m, in blocks of registers.
inline void transpose_cells(const double* a, std::int64_t n, std::int64_t m, double* out) {
    constexpr int W = kWidth<double>;
    const std::int64_t from = padded(m), to = padded(n);
    for (std::int64_t i = 0; i < whole_vectors(n); i += W)
        for (std::int64_t j = 0; j < m; j += W) {
            Vec<double> block[W] = {};
            for (int u = 0; u < W && i + u < n; ++u) block[u] = load(a + (i + u) * from + j);
            transpose<double>(block);
            for (int u = 0; u < W && j + u < m; ++u) store(out + (j + u) * to + i, block[u]);
        }
}

// V_ij = n_i V_ij - H_ij.
inline void weigh_and_subtract(double* V, const double* weights, const double* H, std::int64_t n, std::int64_t m) {
    const std::int64_t stride = padded(m);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = i * stride; j < (i + 1) * stride; ++j) V[j] = weights[i] * V[j] - H[j];
}

// V_ij = r_i c_j V_ij; c is padded, too.
inline void scale_cells(double* V, const double* row, const double* column, std::int64_t n, std::int64_t m) {
    const std::int64_t stride = padded(m);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < stride; ++j) V[i * stride + j] *= row[i] * column[j];
}

// One step of conjugate gradients of this length: s += length p, r -= length q. Returns <r, D r>.
inline double descend(std::int64_t n, double length, const double* p, const double* q, const double* D, double* s,
                      double* r) {
    constexpr int W = kWidth<double>;
    Vec<double> sums = {};
    std::int64_t e = 0;
    for (; e + W <= n; e += W) {
        store(s + e, load(s + e) + length * load(p + e));
        const Vec<double> rest = load(r + e) - length * load(q + e);
        store(r + e, rest);
        sums += rest * rest * load(D + e);
    }
    double sum = 0;
    for (int l = 0; l < W; ++l) sum += sums[l];
    for (; e < n; ++e) {
        s[e] += length * p[e];
        r[e] -= length * q[e];
        sum += r[e] * r[e] * D[e];
    }
    return sum;
}

// <a, b> of n entries.
inline double inner_product(const double* a, const double* b, std::int64_t n) {
    const std::int64_t whole = n / kWidth<double> * kWidth<double>;
    double sum = dot_of_vectors(a, b, whole);
    for (std::int64_t e = whole; e < n; ++e) sum += a[e] * b[e];
    return sum;
}

}  // namespace quickmeans::QM_ISA
