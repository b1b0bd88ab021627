// Rows in CSR form against dense centers: the cost of a row is its non-zeros times the centers.
//
// The table holds the centers column by column, so that one entry of a row is one broadcast value times contiguous
// vectors of the table. Up to kMostVectors vectors of scores stay in registers while all entries of a row go by.
#pragma once

#include "pacer.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

constexpr int kMostVectors = 12;  // with a value and a load they fit sixteen registers
constexpr int kFewVectors = 4;    // so few sums wait for each other: they are kept twice, for even and odd entries

// The entries of one row.
template <class V, class I>
struct CsrRow {
    const I* columns;
    const V* values;
    std::int64_t n;

    CsrRow(const CsrView& x, std::int64_t row) {
        const I* const starts = static_cast<const I*>(x.starts);
        columns = static_cast<const I*>(x.columns) + starts[row];
        values = static_cast<const V*>(x.values) + starts[row];
        n = std::int64_t(starts[row + 1]) - std::int64_t(starts[row]);
    }
};

// scores[0 .. N vectors) = offset + the sum of values times rows of the table, from its first column on.
template <class T, class V, class I, int N>
void csr_multiply(const T* table, std::int64_t stride, const CsrRow<V, I>& row, const T* offset, T* scores) {
    constexpr int W = kWidth<T>;
    constexpr int kSets = N <= kFewVectors ? 2 : 1;
    Vec<T> sums[kSets][N];
    for (int v = 0; v < N; ++v) {
        sums[0][v] = load(offset + v * W);
        if constexpr (kSets == 2) sums[1][v] = Vec<T>{};
    }
    std::int64_t j = 0;
    for (; j + kSets <= row.n; j += kSets)
        for (int s = 0; s < kSets; ++s) {
            const Vec<T> x = splat(T(row.values[j + s]));
            const T* const centers = table + std::int64_t(row.columns[j + s]) * stride;
            for (int v = 0; v < N; ++v) sums[s][v] += x * load(centers + v * W);
        }
    for (; j < row.n; ++j) {
        const Vec<T> x = splat(T(row.values[j]));
        const T* const centers = table + std::int64_t(row.columns[j]) * stride;
        for (int v = 0; v < N; ++v) sums[0][v] += x * load(centers + v * W);
    }
    for (int v = 0; v < N; ++v) {
        if constexpr (kSets == 2) sums[0][v] += sums[1][v];
        store(scores + v * W, sums[0][v]);
    }
}

template <class T, class V, class I>
using CsrMultiply = void (*)(const T*, std::int64_t, const CsrRow<V, I>&, const T*, T*);

template <class T, class V, class I, std::size_t... N>
constexpr CsrMultiply<T, V, I> csr_multiplier(int n, std::index_sequence<N...>) {
    constexpr CsrMultiply<T, V, I> table[] = {csr_multiply<T, V, I, int(N) + 1>...};
    return table[n - 1];
}

// All scores of one row, for as many centers as the table has with its padding.
template <class T, class V, class I>
struct CsrScorer {
    const CsrTable<T>& table;
    int n_groups, n_wide, width;  // groups of vectors: the first n_wide have one vector more than `width`
    CsrMultiply<T, V, I> narrow, wide;

    explicit CsrScorer(const CsrTable<T>& t) : table(t) {
        const int n = int(table.stride / kWidth<T>);
        constexpr auto all = std::make_index_sequence<kMostVectors>();
        n_groups = (n + kMostVectors - 1) / kMostVectors;
        width = n / n_groups;
        n_wide = n % n_groups;
        narrow = csr_multiplier<T, V, I>(width, all);
        wide = n_wide ? csr_multiplier<T, V, I>(width + 1, all) : narrow;
    }
    void operator()(const CsrRow<V, I>& row, T* scores) const {
        std::int64_t at = 0;
        for (int g = 0; g < n_groups; ++g) {
            (g < n_wide ? wide : narrow)(table.values + at, table.stride, row, table.offset + at, scores + at);
            at += (width + (g < n_wide)) * kWidth<T>;
        }
    }
};

// The largest and the second largest of n scores, and whether all of them are finite.
template <class T>
struct TwoScores {
    T best, second;
    bool finite;

    TwoScores(const T* scores, std::int64_t n) {
        constexpr int W = kWidth<T>;
        Vec<T> top = load(scores), next = splat(-T(__builtin_inf())), zero = top * T(0);
        for (std::int64_t k = W; k < n; k += W) {
            const Vec<T> s = load(scores + k), lower = s > top ? top : s;
            next = lower > next ? lower : next;
            top = s > top ? s : top;
            zero += s * T(0);
        }
        best = top[0], second = next[0];
        T none = zero[0];
        for (int lane = 1; lane < W; ++lane) {
            const T a = top[lane], b = next[lane];
            second = a > best ? (best > b ? best : b) : (a > second ? a : second);
            best = a > best ? a : best;
            none += zero[lane];
        }
        finite = none == 0;
    }
};

template <class T, class V, class I>
std::int64_t csr_nearest_of(const CsrNearestJob<T>& job, const Range& range, T* scratch, const Poll& poll) {
    const CsrScorer<T, V, I> score(job.table);
    Pacer pacer{poll};
    for (std::int64_t j = range.first; j < range.first + range.count; ++j) {
        const std::int64_t i = job.index ? job.index[j] : j;
        const CsrRow<V, I> row(job.rows, i);
        score(row, scratch);
        pacer.did((row.n + 1) * job.table.stride);
        const TwoScores<T> found(scratch, job.table.stride);
        std::int64_t k = 0;
        while (k < job.table.n_centers && scratch[k] != found.best) ++k;
        if (!found.finite || k == job.table.n_centers) return i;
        job.labels[i] = std::int32_t(k);
        if (job.best) job.best[i] = found.best;
        if (job.second) job.second[i] = found.second;
    }
    return -1;
}

template <class T, class V, class I>
void csr_scores_of(const CsrView& rows, const CsrTable<T>& table, const Range& range, const std::int64_t* index, T* out,
                   const Poll& poll) {
    const CsrScorer<T, V, I> score(table);
    Pacer pacer{poll};
    for (std::int64_t j = 0; j < range.count; ++j) {
        const CsrRow<V, I> row(rows, index ? index[range.first + j] : range.first + j);
        score(row, out + j * table.stride);
        pacer.did((row.n + 1) * table.stride);
    }
}

// The nearest centers of the rows in a range (of the index, if there is one). `scratch` has as many numbers as the
// table has in a row. Returns -1, or the number of the first row whose scores are not finite.
template <class T>
std::int64_t csr_nearest(const CsrNearestJob<T>& job, const Range& range, T* scratch, const Poll& poll) {
    if constexpr (sizeof(T) == 8)
        if (job.rows.wide_values)
            return job.rows.wide_columns ? csr_nearest_of<T, double, std::int64_t>(job, range, scratch, poll)
                                         : csr_nearest_of<T, double, std::int32_t>(job, range, scratch, poll);
    return job.rows.wide_columns ? csr_nearest_of<T, float, std::int64_t>(job, range, scratch, poll)
                                 : csr_nearest_of<T, float, std::int32_t>(job, range, scratch, poll);
}

// All scores of these rows, or of those that the index names: out has range.count x table.stride numbers.
template <class T>
void csr_scores(const CsrView& rows, const CsrTable<T>& table, const Range& range, const std::int64_t* index, T* out,
                const Poll& poll) {
    if constexpr (sizeof(T) == 8)
        if (rows.wide_values)
            return rows.wide_columns ? csr_scores_of<T, double, std::int64_t>(rows, table, range, index, out, poll)
                                     : csr_scores_of<T, double, std::int32_t>(rows, table, range, index, out, poll);
    return rows.wide_columns ? csr_scores_of<T, float, std::int64_t>(rows, table, range, index, out, poll)
                             : csr_scores_of<T, float, std::int32_t>(rows, table, range, index, out, poll);
}

}  // namespace quickmeans::QM_ISA
