// Rows times panels of centers, and distances of rows in float32.
//
// Center c_k has the score <x, c_k> + offset_k with offset_k = -|c_k|^2 / 2, so |x - c_k|^2 = |x|^2 - 2 score. A few
// rows are multiplied with a panel: twelve sums stay in registers, and rows are read as they are.
#pragma once

#include "pacer.hpp"
#include "tile.hpp"

namespace quickmeans::QM_ISA {

constexpr int kPanelVectors = kPanel / kWidth<float>;

// The rows that are multiplied with V vectors of a panel at once.
template <int V>
constexpr int kRowsAtOnce = 12 / V;

template <int V>
using Scores = Vec<float>[kRowsAtOnce<V>][V];

// scores[r] = row r times the centers in the first V vectors of a panel, plus their offsets.
template <int V>
inline void multiply_panel(const float* panel, const float* offset, const float* const* rows, std::int64_t n,
                           Scores<V>& scores) {
    for (int r = 0; r < kRowsAtOnce<V>; ++r)
        for (int v = 0; v < V; ++v) scores[r][v] = load(offset + v * kWidth<float>);
    for (std::int64_t d = 0; d < n; ++d) {
        Vec<float> c[V];
        for (int v = 0; v < V; ++v) c[v] = load(panel + d * kPanel + v * kWidth<float>);
        for (int r = 0; r < kRowsAtOnce<V>; ++r) {
            const Vec<float> x = splat(rows[r][d]);
            for (int v = 0; v < V; ++v) scores[r][v] += x * c[v];
        }
    }
}

// R rows from number i on, of which there are `left`; past the last one, it is repeated.
template <int R>
struct RowGroup {
    const float* rows[R];
    std::int64_t places[R];
    int count;

    RowGroup(const PanelJob& job, std::int64_t i, std::int64_t left) : count(int(left < R ? left : R)) {
        for (int r = 0; r < R; ++r) {
            places[r] = job.index[i + (r < count ? r : count - 1)];
            rows[r] = job.rows + places[r] * job.n_columns;
        }
    }
};

// out[i * n_centers + k] = <row i, center k> + offset_k for all rows of the range, by their numbers in the index.
inline void all_scores(const PanelJob& job, const Range& rows, float* out, const Poll& poll) {
    constexpr int W = kWidth<float>, R = kRowsAtOnce<kPanelVectors>;
    const std::int64_t n = job.n_columns, K = job.n_centers;
    Pacer pacer{poll};
    for (std::int64_t i = rows.first, left = rows.count; left > 0; i += R, left -= R) {
        const RowGroup<R> group(job, i, left);
        for (std::int64_t k = 0; k < K; k += kPanel) {
            Scores<kPanelVectors> scores;
            multiply_panel<kPanelVectors>(job.panels + k * n, job.offset + k, group.rows, n, scores);
            for (int r = 0; r < group.count; ++r)
                for (std::int64_t c = 0; c < kPanel && k + c < K; ++c)
                    out[(i + r) * K + k + c] = scores[r][c / W][c % W];
            pacer.did(n * R);
        }
    }
}

// |x - y|^2.
inline float squared_distance(const float* x, const float* y, std::int64_t n) {
    constexpr int W = kWidth<float>, C = 4;
    Vec<float> sum[C] = {};
    std::int64_t i = 0;
    for (; i + C * W <= n; i += C * W)
        for (int c = 0; c < C; ++c) {
            const Vec<float> d = load(x + i + c * W) - load(y + i + c * W);
            sum[c] += d * d;
        }
    for (; i + W <= n; i += W) {
        const Vec<float> d = load(x + i) - load(y + i);
        sum[0] += d * d;
    }
    const Vec<float> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    float total = 0;
    for (int j = 0; j < W; ++j) total += all[j];
    for (; i < n; ++i) total += (x[i] - y[i]) * (x[i] - y[i]);
    return total;
}

// out[i] = |x_i - c|^2 for the rows i of the range and their centers c; labels below zero give infinity.
inline void own_distances(const float* rows, const float* centers, std::int64_t n, const std::int32_t* labels,
                          const Range& range, float* out, const Poll& poll) {
    Pacer pacer{poll};
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
        out[i] = labels[i] < 0 ? __builtin_inff() : squared_distance(rows + i * n, centers + labels[i] * n, n);
        pacer.did(n);
    }
}

// out[i] = |x_i|^2 for the rows of the range.
inline void square_rows(const float* rows, std::int64_t n, const Range& range, double* out, const Poll& poll) {
    Pacer pacer{poll};
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
        double sum[8] = {};
        const float* x = rows + i * n;
        for (std::int64_t d = 0; d < n / 8 * 8; d += 8)
            for (int j = 0; j < 8; ++j) sum[j] += double(x[d + j]) * double(x[d + j]);
        for (std::int64_t d = n / 8 * 8; d < n; ++d) sum[0] += double(x[d]) * double(x[d]);
        out[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
        pacer.did(n);
    }
}

}  // namespace quickmeans::QM_ISA
