// Least squares on supports: many small problems that share one Gram matrix.
//
// For every row i, with support S, Gram matrix G and target h:
//     minimise  c G_SS c' / 2 - h_S c'   over c,   so   c = h_S B  with  B = inverse of G_SS.
// To remove entry k raises the minimum by  c_k^2 / (2 B_kk)  and changes the other entries by  -(c_k / B_kk) B_k  (the
// optimal brain surgeon); B itself loses the rank-one term  B_k' B_k / B_kk.
//
// Both follow from the sweep operator on the bordered matrix A = [G_SS, h; h', 0]: sweeping a block P of pivots,
//     A_ij -= A_iP T_j  for i, j outside P,   A_iP = T_i',   A_PP = -D,   with  D = inverse of A_PP,  T_j = D A_Pj,
// turns it into [-B, c'; c, -h B h'], and the surgeon's step is a sweep back. A is symmetric, and only its lower half
// is stored.
#pragma once

#include "pacer.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

constexpr int kLanes = kWidth<double>;

// In place inverse of a small symmetric positive definite matrix, by Gauss-Jordan elimination without pivoting.
inline void invert(double (&D)[kPivots][kPivots]) {
    for (int k = 0; k < kPivots; ++k) {
        const double d = 1 / D[k][k];
        for (int i = 0; i < kPivots; ++i) {
            if (i == k) continue;
            const double f = D[i][k] * d;
            for (int j = 0; j < kPivots; ++j) D[i][j] -= f * D[k][j];
            D[i][k] = -f;
        }
        for (int j = 0; j < kPivots; ++j) D[k][j] *= d;
        D[k][k] = d;
    }
}

// The problem of one row: a support S of s entries, filled up to m. A has m + 1 rows of leading dimension `width`; the
// last one is the target, and in the end the solution.
struct RowProblem {
    double *A, *panel, *turned;  // panel and turned: kPivots rows of leading dimension `width`
    std::int32_t* S;
    int s, m, width;

    double* row(int i) const { return A + std::int64_t(i) * width; }
    double* solution() const { return row(m); }

    void gather(const double* gram, const double* target, int r) {
        m = (s + kPivots - 1) / kPivots * kPivots;
        width = (m + kLanes) / kLanes * kLanes;
        for (int i = 0; i < m; ++i) {
            double* const a = row(i);
            for (int j = 0; j < width; ++j) a[j] = 0;
            if (i >= s) {
                a[i] = 1;
                continue;
            }
            const double* const g = gram + std::int64_t(S[i]) * r;
            for (int j = 0; j <= i; ++j) a[j] = g[S[j]];
        }
        for (int j = 0; j < width; ++j) row(m)[j] = j < s ? target[S[j]] : 0;
    }

    // Rows p .. p + kPivots - 1 of the symmetric A, and D times them.
    void load_panel(int p, double (&D)[kPivots][kPivots]) const {
        for (int q = 0; q < kPivots; ++q) {
            double* const a = panel + q * width;
            for (int j = 0; j <= p + q; ++j) a[j] = row(p + q)[j];
            for (int j = p + q + 1; j <= m; ++j) a[j] = row(j)[p + q];
            for (int j = m + 1; j < width; ++j) a[j] = 0;
        }
        for (int q = 0; q < kPivots; ++q)
            for (int k = 0; k < kPivots; ++k) D[q][k] = panel[q * width + p + k];
        invert(D);
        for (int q = 0; q < kPivots; ++q)
            for (int j = 0; j < width; j += kLanes) {
                Vec<double> t = D[q][0] * load(panel + j);
                for (int k = 1; k < kPivots; ++k) t += D[q][k] * load(panel + k * width + j);
                store(turned + q * width + j, t);
            }
    }

    // A_ij -= A_iP T_j for begin <= j <= i and `Rows` rows from i on.
    template <int Rows>
    void update(int i, int begin) const {
        Vec<double> f[Rows][kPivots];
        for (int u = 0; u < Rows; ++u)
            for (int q = 0; q < kPivots; ++q) f[u][q] = splat(panel[q * width + i + u]);
        for (int j = begin; j < i + Rows; j += kLanes) {
            Vec<double> a[Rows];
            for (int u = 0; u < Rows; ++u) a[u] = load(row(i + u) + j);
            for (int q = 0; q < kPivots; ++q) {
                const Vec<double> t = load(turned + q * width + j);
                for (int u = 0; u < Rows; ++u) a[u] -= f[u][q] * t;
            }
            for (int u = 0; u < Rows; ++u) store(row(i + u) + j, a[u]);
        }
    }

    // Sweep pivots p .. p + kPivots - 1 everywhere.
    void sweep(int p) const {
        double D[kPivots][kPivots];
        load_panel(p, D);
        for (int i = 0; i < m; i += 2)
            if (i < p || i >= p + kPivots) update<2>(i, 0);
        update<1>(m, 0);
        for (int q = 0; q < kPivots; ++q) {
            for (int j = 0; j < p; ++j) row(p + q)[j] = turned[q * width + j];
            for (int k = 0; k < kPivots; ++k) row(p + q)[p + k] = -D[q][k];
            for (int i = p + kPivots; i <= m; ++i) row(i)[p + q] = turned[q * width + i];
        }
    }

    // Sweep them below and to the right only.
    void eliminate(int p) const {
        double D[kPivots][kPivots];
        load_panel(p, D);
        const int first = p + kPivots, begin = first / kLanes * kLanes;
        for (int q = 0; q < kPivots; ++q)
            for (int j = begin; j < first; ++j) turned[q * width + j] = 0;
        for (int i = first; i < m; i += 2) update<2>(i, begin);
        update<1>(m, begin);
        for (int q = 0; q < kPivots; ++q)
            for (int i = first; i <= m; ++i) row(i)[p + q] = turned[q * width + i];
    }

    // The solution and -B.
    void invert_and_solve(Pacer& pacer) const {
        for (int p = 0; p < m; p += kPivots) {
            sweep(p);
            pacer.did(work_of_sweep());
        }
    }

    // The solution alone, in a third of the time: elimination, then substitution from the last entry on.
    void solve(Pacer& pacer) const {
        for (int p = 0; p < m; p += kPivots) {
            eliminate(p);
            pacer.did(work_of_sweep());
        }
        double* const c = solution();
        for (int i = m - 1; i >= kPivots; --i)
            for (int j = 0; j < i / kPivots * kPivots; ++j) c[j] -= c[i] * row(i)[j];
    }

    std::int64_t work_of_sweep() const { return std::int64_t(m) * m / 2 * kPivots; }

    double price(int i) const { return -solution()[i] * solution()[i] / row(i)[i]; }

    int cheapest() const {
        const double* const c = solution();
        int best = 0;
        for (int i = 1; i < s; ++i) {
            const double mine = c[i] * c[i] * row(best)[best], least = c[best] * c[best] * row(i)[i];
            if (mine > least || (mine == least && S[i] < S[best])) best = i;  // because the diagonal is negative
        }
        return best;
    }

    void remove(int k) {
        double *const v = panel, *const c = solution();
        for (int j = 0; j < k; ++j) v[j] = row(k)[j];
        for (int j = k; j < s; ++j) v[j] = row(j)[k];
        for (int j = s; j < width; ++j) v[j] = 0;
        const double d = 1 / v[k];
        const double f = c[k] * d;
        for (int i = 0; i < s; ++i) {
            const double g = v[i] * d;
            for (int j = 0; j <= i; j += kLanes) store(row(i) + j, load(row(i) + j) - g * load(v + j));
        }
        for (int j = 0; j < s; ++j) c[j] -= f * v[j];
        --s;  // the last entry takes the place of the one removed
        for (int j = 0; j < k; ++j) row(k)[j] = row(s)[j];
        for (int i = k + 1; i < s; ++i) row(i)[k] = row(s)[i];
        row(k)[k] = row(s)[s];
        c[k] = c[s];
        S[k] = S[s];
    }
};

// These rows of the job. With l = r + kSupportPadding, `scratch` has l (l + 2 kPivots) doubles, and `order` r integers.
inline void fit_rows(const SupportJob& job, const Range& rows, double* scratch, std::int32_t* order, const Poll& poll) {
    Pacer pacer{poll};
    const int r = int(job.n_atoms);
    const std::int64_t panel = kPivots * std::int64_t(r + kSupportPadding);
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
        RowProblem p{scratch + 2 * panel, scratch, scratch + panel, order, 0, 0, 0};
        for (int j = 0; j < r; ++j)
            if (job.support[i * r + j]) p.S[p.s++] = j;
        p.gather(job.gram, job.targets + i * r, r);
        if (job.prices || job.drop[i])
            p.invert_and_solve(pacer);
        else
            p.solve(pacer);
        for (std::int64_t k = 0; k < job.drop[i] && p.s > 0; ++k) {
            p.remove(p.cheapest());
            pacer.did(std::int64_t(p.s) * p.s / 2);
        }
        for (int j = 0; j < r; ++j) {
            job.support[i * r + j] = 0;
            job.values[i * r + j] = 0;
            if (job.prices) job.prices[i * r + j] = __builtin_inf();
        }
        for (int k = 0; k < p.s; ++k) {
            job.support[i * r + p.S[k]] = 1;
            job.values[i * r + p.S[k]] = p.solution()[k];
            if (job.prices) job.prices[i * r + p.S[k]] = job.weights[i] * p.price(k);
        }
    }
}

}  // namespace quickmeans::QM_ISA
