// The points of rows (see groups.hpp), and the groups that they look into first.
#pragma once

#include "group_types.hpp"
#include "nearest.hpp"

namespace quickmeans::QM_ISA {

// Stores the products of a tile with the directions as a tile of points.
template <class T, int V>
struct PointSink {
    T* tile;
    std::int64_t n;
    void take(std::int64_t direction, const Vec<T>* v) const {
        if (direction >= n) return;
        for (int i = 0; i < V; ++i) store(tile + (direction * V + i) * kWidth<T>, v[i]);
    }
};

template <class T>
NearestJob<T> panel_job(const PointPanels<T>& panels, std::int64_t n_columns) {
    NearestJob<T> job{};
    job.rows.n_columns = n_columns;
    job.panels = panels.panels;
    job.offset = panels.offset;
    job.n_centers = panels.n_points;
    return job;
}

// Scale the points of a tile if only directions count, and set the last coordinate.
template <class T, int V>
inline void finish_points(const GroupJob<T>& job, const T* norms, T* tile) {
    constexpr int kLanes = V * kWidth<T>;
    const std::int64_t n = job.directions.n_points;
    T squares[kLanes] = {};
    for (std::int64_t j = 0; j < n; ++j)
        for (int lane = 0; lane < kLanes; ++lane) {
            T& value = tile[j * kLanes + lane];
            if (job.spherical && norms[lane] > 0) value /= T(__builtin_sqrt(double(norms[lane])));
            squares[lane] += value * value;
        }
    for (int lane = 0; lane < kLanes; ++lane) {
        const T rest = (job.spherical ? T(1) : norms[lane]) - squares[lane];
        tile[n * kLanes + lane] = rest > 0 ? T(__builtin_sqrt(double(rest))) : T(0);
    }
}

// Points and first groups of the rows of a tile.
template <class T, int V>
bool place_tile(const GroupJob<T>& job, const GroupBlock<T>& block, const Range& rows, const GroupMemory<T>& m,
                Pacer& pacer) {
    constexpr int W = kWidth<T>, kLanes = V * W;
    const std::int64_t D = job.rows.n_columns, C = job.n_coordinates, at = rows.first - block.first;
    if (!load_tile(job.rows, rows.first, rows.count, m.tile, kLanes, m.tile + D * kLanes, job.limit)) return false;
    Vec<T> sum[V] = {};
    for (std::int64_t j = 0; j < D; ++j)
        for (int v = 0; v < V; ++v) {
            const Vec<T> d = load(m.tile + (j * V + v) * W) - job.mean[j];
            sum[v] += d * d;
        }
    T norms[kLanes];
    for (int v = 0; v < V; ++v) store(norms + v * W, sum[v]);
    PointSink<T, V> sink{m.point_tile, job.directions.n_points};
    compare_all<T, V>(panel_job(job.directions, D), m.tile, sink, pacer);
    finish_points<T, V>(job, norms, m.point_tile);
    LaneWinners<T, V, false> winners;
    compare_all<T, V>(panel_job(job.first_groups, job.n_first), m.point_tile, winners, pacer);
    store_tile(m.point_tile, kLanes, C, block.points + at * C, C, 1, rows.count);
    for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int32_t group = std::int32_t(winners.first[i / W][i % W]);
        block.group[at + i] = group < 0 ? 0 : group;
        job.norms[position(job.rows, rows.first + i)] = norms[i];
    }
    return true;
}

// The same for all rows of a range. False: a row is not within the limit.
template <class T>
bool place_rows(const GroupJob<T>& job, const GroupBlock<T>& block, const Range& rows, GroupMemory<T>& m) {
    constexpr int V = kNearestVectors, W = kWidth<T>;
    Pacer pacer{m.poll};
    for (std::int64_t i = rows.first, left = rows.count; left > 0; i += V * W, left -= V * W) {
        const Range tile{i, left < V * W ? left : V * W};
        const bool fine = tile.count <= W ? place_tile<T, 1>(job, block, tile, m, pacer)
                                          : place_tile<T, V>(job, block, tile, m, pacer);
        if (!fine) return false;
    }
    return true;
}

}  // namespace quickmeans::QM_ISA
