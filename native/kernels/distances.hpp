// Distances of rows from all centers, and squared distances of rows from their own centers.
//
// With y = x - m and c_k = u_k - m, for a mean m, the square of a distance is |y|^2 + |c_k|^2 - 2 <y, c_k>. Six rows
// are multiplied with a panel of centers, one per lane of two vectors: twelve sums stay in registers. A block of
// columns of the panel stays in the first-level cache while the rows of a block, which stay in the second-level cache,
// go by.
//
// The sum over a block of kDistanceColumns columns begins at zero, so with the unit of rounding e the square is wrong
// by at most (kDistanceColumns + D / kDistanceColumns + 4) e s, where s = |y|^2 + |c_k|^2. If it is below kClose s, it
// is computed anew from the differences x - u_k, whose sum of squares has no cancellation. So for D up to 1000 the
// relative error of a distance is at most 140 e / (2 kClose): 2e-5 in float32 and 8e-12 in float64. Errors of both
// signs mostly cancel, and a hundredth of that is seen.
#pragma once

#include "exact.hpp"
#include "intrinsics.hpp"
#include "pacer.hpp"

namespace quickmeans::QM_ISA {

constexpr int kDistanceRows = 6;
// 128 columns of a panel are 8 KB (AVX2), a quarter of the first-level cache.
constexpr int kDistanceColumns = 128;
// Larger values send more entries through the differences, where an entry takes 2.5 times as long as in the product. A
// quarter does so for centers that are nearer to a row than half of its distance from the mean.
template <class T>
constexpr T kClose = sizeof(T) == 4 ? T(0.25) : T(0x1p-10);
// Below this the squares of differences may have lost digits to underflow in float32; they are then computed in
// float64.
template <class T>
constexpr T kTiny = sizeof(T) == 4 ? T(1e-30) : T(0);

// The sum of f(i) for i in [0, n), where f gives one vector for i a multiple of its width, and `one` a single number.
template <class T, class Some, class One>
inline T sum_over(std::int64_t n, const Some& some, const One& one) {
    constexpr int W = kWidth<T>, C = 4;
    Vec<T> sum[C] = {};
    std::int64_t i = 0;
    for (; i + C * W <= n; i += C * W)
        for (int c = 0; c < C; ++c) sum[c] += some(i + c * W);
    for (; i + W <= n; i += W) sum[0] += some(i);
    const Vec<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    T total = 0;
    for (int j = 0; j < W; ++j) total += all[j];
    for (; i < n; ++i) total += one(i);
    return total;
}

// |x|^2.
template <class T>
T square_of(const T* x, std::int64_t n) {
    const auto some = [&](std::int64_t i) { return load(x + i) * load(x + i); };
    return sum_over<T>(n, some, [&](std::int64_t i) { return x[i] * x[i]; });
}

// y = x - m; returns |y|^2.
template <class T>
T subtract(const T* x, const T* m, T* y, std::int64_t n) {
    const auto some = [&](std::int64_t i) {
        const Vec<T> d = load(x + i) - load(m + i);
        store(y + i, d);
        return d * d;
    };
    return sum_over<T>(n, some, [&](std::int64_t i) { return y[i] = x[i] - m[i], y[i] * y[i]; });
}

// |x - u|^2 from the differences.
template <class T>
T difference_square(const T* x, const T* u, std::int64_t n) {
    const auto some = [&](std::int64_t i) {
        const Vec<T> d = load(x + i) - load(u + i);
        return d * d;
    };
    return sum_over<T>(n, some, [&](std::int64_t i) { return (x[i] - u[i]) * (x[i] - u[i]); });
}

// |x - u|.
template <class T>
T exact_distance(const T* x, const T* u, std::int64_t n) {
    const T square = difference_square(x, u, n);
    if (square > kTiny<T>) return T(__builtin_sqrt(double(square)));
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += (double(x[i]) - double(u[i])) * (double(x[i]) - double(u[i]));
    return T(__builtin_sqrt(sum));
}

// ---- all centers ----------------------------------------------------------------------------------------------------

// Some rows, less the mean or divided by their lengths; the last group of kDistanceRows repeats the last row.
template <class T>
struct DistanceBlock {
    Range rows;
    std::int64_t step;  // between two rows
    T* sums;            // rows x two vectors
    T* values;
    T* squares;  // |y|^2
    T* line;     // one row of the input

    DistanceBlock(const DistanceJob<T>& job, T* scratch) : rows{}, step(job.row_step), sums(scratch) {
        values = sums + job.block_rows * 2 * kWidth<T>;
        squares = values + job.block_rows * step;
        line = squares + job.block_rows;
    }
    const T* row(std::int64_t i) const { return values + (i < rows.count ? i : rows.count - 1) * step; }
};

// Read a row into the block. False if it has a NaN, an infinity, numbers whose squares overflow or no direction.
template <class T>
bool load_distance_row(const DistanceJob<T>& job, std::int64_t i, DistanceBlock<T>& block) {
    const std::int64_t n = job.rows.n_columns;
    T *y = block.values + i * block.step, &square = block.squares[i];
    square = subtract(plain_row(job.rows, block.rows.first + i, block.line), job.mean, y, n);
    if (!(square < T(__builtin_inf()))) return false;
    if (!job.spherical) return true;
    if (square == T(0)) return false;
    const T length = T(__builtin_sqrt(double(square)));
    for (std::int64_t j = 0; j < n; ++j) y[j] /= length;
    square = square_of(y, n);
    return true;
}

// sums[r] (+)= <y_r, c> or |x_r - u|^2 over n columns of a group of rows and of the first V vectors of a panel.
template <class T, int V, bool Differences>
inline void multiply_group(const T* panel, const T* const* rows, std::int64_t n, bool first, T* sums) {
    constexpr int W = kWidth<T>, R = kDistanceRows;
    Vec<T> sum[R][V] = {};
    for (std::int64_t d = 0; d < n; ++d) {
        Vec<T> c[V];
        for (int v = 0; v < V; ++v) c[v] = load(panel + (2 * d + v) * W);
        for (int r = 0; r < R; ++r) {
            const Vec<T> x = splat(rows[r][d]);
            for (int v = 0; v < V; ++v) {
                const Vec<T> other = Differences ? c[v] - x : c[v];
                sum[r][v] += (Differences ? other : x) * other;
            }
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) {
            T* at = sums + (2 * r + v) * W;
            store(at, first ? sum[r][v] : sum[r][v] + load(at));
        }
}

// The sums of all rows of a block with a panel.
template <class T, int V, bool Differences>
void multiply_block_rows(const DistanceJob<T>& job, const DistanceBlock<T>& block, const T* panel) {
    constexpr int W = kWidth<T>, R = kDistanceRows;
    const std::int64_t n = job.rows.n_columns, n_blocks = (n + kDistanceColumns - 1) / kDistanceColumns;
    const std::int64_t most = (n + n_blocks - 1) / n_blocks;  // blocks of equal size, so that none is short
    for (std::int64_t from = 0; from < n; from += most) {
        const std::int64_t count = n - from < most ? n - from : most;
        for (std::int64_t i = 0; i < block.rows.count; i += R) {
            const T* rows[R];
            for (int r = 0; r < R; ++r) rows[r] = block.row(i + r) + from;
            multiply_group<T, V, Differences>(panel + 2 * W * from, rows, count, from == 0, block.sums + 2 * W * i);
        }
    }
}

// Store the first `count` of the distances of a row.
template <class T>
inline void store_distances(const DistanceJob<T>& job, const T* distances, std::int64_t count, std::int64_t at) {
    if constexpr (sizeof(T) == 8)
        if (job.narrow) {
            float* to = static_cast<float*>(job.out) + at;
            for (std::int64_t i = 0; i < count; ++i) to[i] = float(distances[i]);
            return;
        }
    T* to = static_cast<T*>(job.out) + at;
    if (count == 2 * kWidth<T>)
        __builtin_memcpy(to, distances, 2 * QM_VECTOR_BYTES);
    else
        __builtin_memcpy(to, distances, std::size_t(count) * sizeof(T));
}

// Distances from the sums of the panel that begins with center k; those that are too close are computed anew.
template <class T, int V, bool Differences>
void finish_panel(const DistanceJob<T>& job, const DistanceBlock<T>& block, std::int64_t k, Pacer& pacer) {
    constexpr int W = kWidth<T>;
    const std::int64_t n = job.rows.n_columns, left = job.n_centers - k, count = left < V * W ? left : V * W;
    for (std::int64_t i = 0; i < block.rows.count; ++i) {
        alignas(64) T distances[V * W];
        for (int v = 0; v < V; ++v) {
            const Vec<T> sum = load(block.sums + (2 * i + v) * W);
            const Vec<T> size = block.squares[i] + load(job.squares + k + v * W);
            const Vec<T> square = Differences ? sum : size - T(2) * sum;
            const unsigned far = lane_bits<T>(square > (Differences ? splat(kTiny<T>) : size * kClose<T> + kTiny<T>));
            store(distances + v * W, square_root<T>(square));
            for (unsigned close = ~far & ((1u << W) - 1); close; close &= close - 1) {
                const int at = v * W + __builtin_ctz(close);
                if (at >= count) break;
                const bool as_read = !Differences && !job.spherical;
                const T* x = as_read ? plain_row(job.rows, block.rows.first + i, block.line) : block.row(i);
                distances[at] = exact_distance(x, job.centers + (k + at) * n, n);
                pacer.did(n);
            }
        }
        store_distances(job, distances, count, (block.rows.first + i) * job.n_centers + k);
    }
}

template <class T, int V, bool Differences>
void panel_distances(const DistanceJob<T>& job, const DistanceBlock<T>& block, std::int64_t k, Pacer& pacer) {
    multiply_block_rows<T, V, Differences>(job, block, job.panels + k * job.rows.n_columns);
    finish_panel<T, V, Differences>(job, block, k, pacer);
    pacer.did(block.rows.count * job.rows.n_columns * V * kWidth<T>);
}

template <class T, bool Differences>
bool distances_in(const DistanceJob<T>& job, const Range& rows, T* scratch, const Poll& poll) {
    constexpr int W = kWidth<T>;
    Pacer pacer{poll};
    DistanceBlock<T> block(job, scratch);
    const std::int64_t end = rows.first + rows.count;
    for (std::int64_t first = rows.first; first < end; first += job.block_rows) {
        block.rows = {first, end - first < job.block_rows ? end - first : job.block_rows};
        for (std::int64_t i = 0; i < block.rows.count; ++i)
            if (!load_distance_row(job, i, block)) return false;
        for (std::int64_t k = 0; k < job.n_centers; k += 2 * W)
            if (job.n_centers - k > W)
                panel_distances<T, 2, Differences>(job, block, k, pacer);
            else
                panel_distances<T, 1, Differences>(job, block, k, pacer);
    }
    return true;
}

// The distances of the rows of a range. False if a row cannot be compared; see load_distance_row.
template <class T>
bool distances(const DistanceJob<T>& job, const Range& rows, T* scratch, const Poll& poll) {
    return job.by_differences ? distances_in<T, true>(job, rows, scratch, poll)
                              : distances_in<T, false>(job, rows, scratch, poll);
}

// ---- the own center -------------------------------------------------------------------------------------------------

// out[i] = |x_i - shift - u|^2 for the rows i of the range and their centers u; `line` has room for a row.
inline void squared_differences(const DifferenceJob& job, const Range& rows, double* line, const Poll& poll) {
    const std::int64_t n = job.rows.n_columns;
    Pacer pacer{poll};
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
        const double* x = plain_row(job.rows, i, line);
        if (job.shift) {
            for (std::int64_t j = 0; j < n; ++j) line[j] = x[j] - job.shift[j];
            x = line;
        }
        if (job.spherical) {
            const double length = __builtin_sqrt(square_of(x, n));
            for (std::int64_t j = 0; j < n; ++j) line[j] = x[j] / length;
            x = line;
        }
        job.out[i] = difference_square(x, job.centers + job.labels[i] * n, n);
        pacer.did(3 * n);
    }
}

}  // namespace quickmeans::QM_ISA
