// Rows against the centers of a list.
//
// As in nearest.hpp a tile of rows is transposed, one row per lane, and the nearest center has the largest score
// <x, c_k> + offset_k. The centers stay where they are: a list names them, so neighbouring clusters need no copies.
#pragma once

#include "nearest.hpp"

namespace quickmeans::QM_ISA {

// Centers whose sums are in registers at a time: with one vector of rows it takes eight to hide the latency of a sum.
template <int V>
constexpr int kListedAtOnce = V == 1 ? 8 : kCentersAtOnce;

// The scores of R centers of a list, for V vectors of rows.
template <int R, int V>
inline void score_centers(const ListJob& job, const std::int32_t* list, const float* tile, Vec<float> (&sum)[R][V]) {
    constexpr int W = kWidth<float>;
    const std::int64_t D = job.rows.n_columns;
    const float* center[R];
    for (int r = 0; r < R; ++r) {
        center[r] = job.centers + std::int64_t(list[r]) * D;
        for (int v = 0; v < V; ++v) sum[r][v] = splat(job.offset[list[r]]);
    }
    for (std::int64_t j = 0; j < D; ++j) {
        Vec<float> x[V];
        for (int v = 0; v < V; ++v) x[v] = load(tile + (j * V + v) * W);
        for (int r = 0; r < R; ++r) {
            const float c = center[r][j];
            for (int v = 0; v < V; ++v) sum[r][v] += c * x[v];
        }
    }
}

// Calls take(place in the list, scores) for every center of the list.
template <int V, class Take>
inline void score_list(const ListJob& job, const float* tile, Pacer& pacer, const Take& take) {
    constexpr int R = kListedAtOnce<V>;
    const std::int64_t D = job.rows.n_columns;
    std::int64_t at = 0;
    for (; at + R <= job.n_listed; at += R, pacer.did(D * R * V * kWidth<float>)) {
        Vec<float> sum[R][V];
        score_centers<R, V>(job, job.list + at, tile, sum);
        for (int r = 0; r < R; ++r) take(at + r, sum[r]);
    }
    for (; at < job.n_listed; ++at, pacer.did(D * V * kWidth<float>)) {
        Vec<float> sum[1][V];
        score_centers<1, V>(job, job.list + at, tile, sum);
        take(at, sum[0]);
    }
}

// The nearest two of some centers.
struct Nearest {
    std::int32_t label, second;
    float best, next;
};

// The nearest two of both, whose centers are different; of equals, those that came first.
inline Nearest merged(const Nearest& a, const Nearest& b) {
    const Nearest &won = b.best > a.best ? b : a, &lost = b.best > a.best ? a : b;
    if (lost.best > won.next) return {won.label, lost.label, won.best, lost.best};
    return {won.label, won.second, won.best, won.next};
}

template <int V>
void nearest_listed_tile(const ListJob& job, const Range& rows, float* memory, Pacer& pacer) {
    constexpr int W = kWidth<float>, kLanes = V * W;
    load_tile(job.rows, rows.first, rows.count, memory, kLanes, memory + job.rows.n_columns * kLanes,
              float(__builtin_inf()));
    LaneWinners<float, V, true> winners;
    score_list<V>(job, memory, pacer,
                  [&](std::int64_t at, const Vec<float>* scores) { winners.take(job.list[at], scores); });
    for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int64_t at = position(job.rows, rows.first + i);
        Nearest found{std::int32_t(winners.first[i / W][i % W]), std::int32_t(winners.second[i / W][i % W]),
                      winners.best[i / W][i % W], winners.next[i / W][i % W]};
        if (job.more) found = merged({job.labels[at], job.seconds[at], job.best[at], job.next[at]}, found);
        job.labels[at] = found.label < 0 ? job.list[0] : found.label;
        if (!job.best) continue;
        job.seconds[at] = found.second;
        job.best[at] = found.best;
        job.next[at] = found.next;
    }
}

// The nearest centers of these rows among those of the list. The memory is that of a NearestKernel.
inline void nearest_listed(const ListJob& job, const Range& rows, float* memory, const Poll& poll) {
    constexpr int V = kNearestVectors, W = kWidth<float>;
    Pacer pacer{poll};
    for (std::int64_t i = rows.first, left = rows.count; left > 0; i += V * W, left -= V * W) {
        const Range tile{i, left < V * W ? left : V * W};
        if (tile.count <= W)
            nearest_listed_tile<1>(job, tile, memory, pacer);
        else if (tile.count <= 2 * W)
            nearest_listed_tile<2>(job, tile, memory, pacer);
        else
            nearest_listed_tile<V>(job, tile, memory, pacer);
    }
}

// out[place in the list * lanes + i] = the score of row i; there are at most `lanes` rows, those of a NearestKernel.
inline void score_listed(const ListJob& job, const Range& rows, float* memory, float* out, const Poll& poll) {
    constexpr int V = kNearestVectors, W = kWidth<float>, kLanes = V * W;
    Pacer pacer{poll};
    load_tile(job.rows, rows.first, rows.count, memory, kLanes, memory + job.rows.n_columns * kLanes,
              float(__builtin_inf()));
    score_list<V>(job, memory, pacer, [&](std::int64_t at, const Vec<float>* scores) {
        for (int v = 0; v < V; ++v) store(out + (at * V + v) * W, scores[v]);
    });
}

}  // namespace quickmeans::QM_ISA
