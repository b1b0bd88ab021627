// Least squares on supports: many small problems that share one Gram matrix.
//
// For every row i, with support S, Gram matrix G and target h:
//     minimise  c G_SS c' / 2 - h_S c'   over c,   so   c = h_S B  with  B = inverse of G_SS.
// Taking entry k away raises the minimum by  c_k^2 / (2 B_kk)  and changes the others by  -(c_k / B_kk) B_k  (the
// optimal brain surgeon); B itself loses the rank-one term  B_k' B_k / B_kk.
#pragma once

#include "types.hpp"

namespace quickmeans::QM_ISA {

// In place inverse of a symmetric positive definite s x s matrix, by Gauss-Jordan elimination without pivoting.
inline void invert(double* B, int s) {
    for (int k = 0; k < s; ++k) {
        double* const pivot = B + std::int64_t(k) * s;
        const double d = 1 / pivot[k];
        for (int i = 0; i < s; ++i) {
            if (i == k) continue;
            double* const row = B + std::int64_t(i) * s;
            const double f = row[k] * d;
            for (int j = 0; j < s; ++j) row[j] -= f * pivot[j];
            row[k] = -f;
        }
        for (int j = 0; j < s; ++j) pivot[j] *= d;
        pivot[k] = d;
    }
}

// The problem of one row while entries are taken away: support S, solution c, inverse B of leading dimension `width`.
struct RowProblem {
    double *B, *c, *column;
    std::int32_t* S;
    int s, width;

    void solve(const double* gram, const double* target, int r) {
        width = s;
        for (int i = 0; i < s; ++i)
            for (int j = 0; j < s; ++j) B[i * s + j] = gram[std::int64_t(S[i]) * r + S[j]];
        invert(B, s);
        for (int i = 0; i < s; ++i) {
            double sum = 0;
            for (int j = 0; j < s; ++j) sum += B[i * s + j] * target[S[j]];
            c[i] = sum;
        }
    }
    double price(int i) const { return c[i] * c[i] / B[i * width + i]; }
    int cheapest() const {
        int best = 0;
        for (int i = 1; i < s; ++i)
            if (price(i) < price(best) || (price(i) == price(best) && S[i] < S[best])) best = i;
        return best;
    }
    void remove(int k) {
        const double d = 1 / B[k * width + k], f = c[k] * d;
        for (int j = 0; j < s; ++j) column[j] = B[k * width + j];
        for (int i = 0; i < s; ++i) {
            const double g = column[i] * d;
            double* const row = B + i * width;
            c[i] -= f * column[i];
            for (int j = 0; j < s; ++j) row[j] -= g * column[j];
        }
        --s;  // the last entry takes the place of the one that goes
        for (int j = 0; j <= s; ++j) B[k * width + j] = B[s * width + j];
        for (int i = 0; i <= s; ++i) B[i * width + k] = B[i * width + s];
        c[k] = c[s];
        S[k] = S[s];
    }
};

// Rows [first, first + count) of the job; `scratch` holds r * (r + 2) doubles, `order` r integers.
inline void fit_rows(const SupportJob& job, const Range& rows, double* scratch, std::int32_t* order) {
    const int r = int(job.n_atoms);
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
        RowProblem p{scratch, scratch + std::int64_t(r) * r, scratch + std::int64_t(r) * (r + 1), order, 0, 0};
        for (int j = 0; j < r; ++j)
            if (job.support[i * r + j]) p.S[p.s++] = j;
        p.solve(job.gram, job.targets + i * r, r);
        for (std::int64_t k = 0; k < job.drop[i] && p.s > 0; ++k) p.remove(p.cheapest());
        for (int j = 0; j < r; ++j) {
            job.support[i * r + j] = 0;
            job.values[i * r + j] = 0;
            job.prices[i * r + j] = __builtin_inf();
        }
        for (int k = 0; k < p.s; ++k) {
            job.support[i * r + p.S[k]] = 1;
            job.values[i * r + p.S[k]] = p.c[k];
            job.prices[i * r + p.S[k]] = job.weights[i] * p.price(k);
        }
    }
}

}  // namespace quickmeans::QM_ISA
