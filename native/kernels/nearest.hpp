// The nearest centers of every row among all centers.
//
// Center c_k has the score <x, c_k> + offset_k, and the nearest center has the largest. A tile of rows is transposed,
// one row per lane, and multiplied with a few centers at a time; sums stay in registers, and every lane keeps its
// largest scores. A score is added up in the same order in every tile, so a row gets the same bits wherever it is.
#pragma once

#include "pacer.hpp"
#include "sinks.hpp"

namespace quickmeans::QM_ISA {

// With kCentersAtOnce centers their sums, the inputs and one coefficient fill the registers: 16 of them, 32 with
// AVX-512; without FMA instructions a product needs another.
constexpr int kNearestVectors = QM_VECTOR_BYTES == 64 ? 6 : QM_VECTOR_BYTES == 32 ? 3 : 2;
constexpr int kCentersAtOnce = 4;
// Columns that are multiplied before sums are put aside: with a tile of 24 lanes of float32 they take 24 KB, most of
// the first-level cache.
constexpr std::int64_t kNearestColumns = 256;

// The largest score of every lane and its center, and the second largest if kTwo. Centers come in ascending order, so
// the first of equals stays.
template <class T, int V, bool kTwo>
struct LaneWinners {
    using Index = typename IndexOf<T>::type;
    Vec<T> best[V], next[V];
    Vec<Index> first[V], second[V];

    LaneWinners() {
        for (int v = 0; v < V; ++v) {
            best[v] = next[v] = splat(-T(__builtin_inf()));
            first[v] = second[v] = splat(Index(-1));
        }
    }
    void take(std::int64_t center, const Vec<T>* scores) {
        const Vec<Index> here = splat(Index(center));
        for (int v = 0; v < V; ++v) {
            const auto wins = scores[v] > best[v];
            if constexpr (kTwo) {
                const auto places = scores[v] > next[v];
                second[v] = wins ? first[v] : places ? here : second[v];
                next[v] = wins ? best[v] : places ? scores[v] : next[v];
            }
            first[v] = wins ? here : first[v];
            best[v] = wins ? scores[v] : best[v];
        }
    }
    // Store the results of the lanes. If no score of a row is finite, the first center is as good as any.
    void put(const NearestJob<T>& job, const Range& rows) const {
        constexpr int W = kWidth<T>;
        for (std::int64_t i = 0; i < rows.count; ++i) {
            const std::int64_t at = position(job.rows, rows.first + i);
            const std::int32_t label = std::int32_t(first[i / W][i % W]);
            job.labels[at] = label < 0 ? 0 : label;
            if constexpr (kTwo) {
                job.best[at] = best[i / W][i % W];
                job.next[at] = next[i / W][i % W];
                if (job.seconds) job.seconds[at] = std::int32_t(second[i / W][i % W]);
            }
        }
    }
};

// Add the columns [from, to) of R centers of a panel, for V vectors of rows.
template <class T, int R, int V>
inline void add_columns(const T* panel, std::int64_t from, std::int64_t to, const T* tile, Vec<T> (&sum)[R][V]) {
    constexpr int W = kWidth<T>;
    for (std::int64_t j = from; j < to; ++j) {
        Vec<T> x[V];
        for (int v = 0; v < V; ++v) x[v] = load(tile + (j * V + v) * W);
        for (int r = 0; r < R; ++r) {
            const T c = panel[j * kPanel + r];
            for (int v = 0; v < V; ++v) sum[r][v] += c * x[v];
        }
    }
}

// The centers of a panel from number r on, R of them, and all columns at once.
template <int R, class T, int V, class Winners>
inline void compare_short(const NearestJob<T>& job, const T* panel, std::int64_t k, const T* tile, Winners& winners) {
    Vec<T> sum[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) sum[r][v] = splat(job.offset[k + r]);
    add_columns<T, R, V>(panel, 0, job.rows.n_columns, tile, sum);
    for (int r = 0; r < R; ++r) winners.take(k + r, sum[r]);
}

// The n centers of a panel from center k on, in blocks of columns that stay in the first-level cache.
template <class T, int V, class Winners>
void compare_long(const NearestJob<T>& job, const T* panel, std::int64_t k, int n, const T* tile, Winners& winners) {
    constexpr int W = kWidth<T>, R = kCentersAtOnce;
    alignas(64) T sums[kPanel * V * W];
    const std::int64_t D = job.rows.n_columns;
    for (std::int64_t from = 0; from < D; from += kNearestColumns) {
        const std::int64_t to = from + kNearestColumns < D ? from + kNearestColumns : D;
        for (int r0 = 0; r0 < n; r0 += R) {
            Vec<T> sum[R][V];
            for (int r = 0; r < R; ++r)
                for (int v = 0; v < V; ++v)
                    sum[r][v] = from ? load(sums + ((r0 + r) * V + v) * W) : splat(job.offset[k + r0 + r]);
            add_columns<T, R, V>(panel + r0, from, to, tile, sum);
            for (int r = 0; r < R; ++r)
                for (int v = 0; v < V; ++v) store(sums + ((r0 + r) * V + v) * W, sum[r][v]);
        }
    }
    for (int r = 0; r < n; ++r) {
        Vec<T> sum[V];
        for (int v = 0; v < V; ++v) sum[v] = load(sums + (r * V + v) * W);
        winners.take(k + r, sum);
    }
}

// Compare the rows of a tile with all centers. Two centers at a time are enough for the last one or two.
template <class T, int V, class Winners>
inline void compare_all(const NearestJob<T>& job, const T* tile, Winners& winners, Pacer& pacer) {
    const std::int64_t D = job.rows.n_columns, K = job.n_centers;
    for (std::int64_t k = 0; k < K; k += kPanel) {
        const T* const panel = job.panels + k * D;
        const int n = int(K - k < kPanel ? K - k : kPanel);
        if (D > kNearestColumns) {
            compare_long<T, V>(job, panel, k, n, tile, winners);
        } else {
            int r = 0;
            for (; n - r > 2; r += kCentersAtOnce)
                compare_short<kCentersAtOnce, T, V>(job, panel + r, k + r, tile, winners);
            if (r < n) compare_short<2, T, V>(job, panel + r, k + r, tile, winners);
        }
        pacer.did(D * n * V * kWidth<T>);
    }
}

// Squared distances of the rows of a tile from the mean.
template <class T, int V>
inline void store_norms(const NearestJob<T>& job, const T* tile, const Range& rows) {
    constexpr int W = kWidth<T>;
    Vec<T> sum[V] = {};
    for (std::int64_t j = 0; j < job.rows.n_columns; ++j)
        for (int v = 0; v < V; ++v) {
            const Vec<T> d = load(tile + (j * V + v) * W) - job.mean[j];
            sum[v] += d * d;
        }
    for (std::int64_t i = 0; i < rows.count; ++i) job.norms[position(job.rows, rows.first + i)] = sum[i / W][i % W];
}

// One tile of at most V vectors of rows.
template <class T, int V, bool kTwo>
bool nearest_tile(const NearestJob<T>& job, const Range& rows, T* memory, Pacer& pacer) {
    constexpr int kLanes = V * kWidth<T>;
    const T* tile = job.tiles ? job.tiles + rows.first * job.rows.n_columns : memory;
    T* const staging = memory + job.rows.n_columns * kLanes;
    if (!job.tiles && !load_tile(job.rows, rows.first, rows.count, memory, kLanes, staging, job.limit)) return false;
    if (job.norms) store_norms<T, V>(job, tile, rows);
    LaneWinners<T, V, kTwo> winners;
    compare_all<T, V>(job, tile, winners, pacer);
    winners.put(job, rows);
    return true;
}

template <class T, bool kTwo>
bool nearest_rows(const NearestJob<T>& job, const Range& rows, T* memory, const Poll& poll) {
    constexpr int V = kNearestVectors, W = kWidth<T>;
    Pacer pacer{poll};
    for (std::int64_t i = rows.first, left = rows.count; left > 0; i += V * W, left -= V * W) {
        const Range tile{i, left < V * W ? left : V * W};
        const bool fine = tile.count <= W && !job.tiles ? nearest_tile<T, 1, kTwo>(job, tile, memory, pacer)
                                                        : nearest_tile<T, V, kTwo>(job, tile, memory, pacer);
        if (!fine) return false;
    }
    return true;
}

template <class T>
void make_tiles(const RowsView& x, const Range& rows, T* tiles, T* staging) {
    constexpr int kLanes = kNearestVectors * kWidth<T>;
    for (std::int64_t i = 0; i < rows.count; i += kLanes) {
        const std::int64_t count = rows.count - i < kLanes ? rows.count - i : kLanes;
        load_tile(x, rows.first + i, count, tiles + (rows.first + i) * x.n_columns, kLanes, staging,
                  T(__builtin_inf()));
    }
}

template <class T>
bool nearest(const NearestJob<T>& job, const Range& rows, T* memory, const Poll& poll) {
    return job.best ? nearest_rows<T, true>(job, rows, memory, poll) : nearest_rows<T, false>(job, rows, memory, poll);
}

}  // namespace quickmeans::QM_ISA
