// One row alone: the same sums in the same order as in a tile, so the same bits, without transposing anything.
#pragma once

#include "intrinsics.hpp"
#include "sinks.hpp"

namespace quickmeans::QM_ISA {

// The row in `buffer`, and a zero after it for the entries that fill up short rows of a slice.
template <class T>
const T* load_row(const RowsView& x, std::int64_t index, T* buffer) {
    converter<T>(x.scalar)(x.data + index * x.row_stride, x.column_stride, buffer, x.n_columns);
    buffer[x.n_columns] = T(0);
    return buffer;
}

template <class T>
bool is_finite(const T* x, std::int64_t n) {
    constexpr int W = kWidth<T>;
    FiniteCheck<T> check;
    std::int64_t i = 0;
    for (; i + W <= n; i += W) check.see(0, load(x + i));
    T rest = 0;
    for (; i < n; ++i) rest += x[i] * T(0);
    return check.passed() && rest == T(0);
}

// The lowest index of the largest of n > 0 numbers.
template <class T>
std::int64_t first_largest(const T* x, std::int64_t n) {
    constexpr int W = kWidth<T>;
    Vec<T> top = splat(x[0]);
    std::int64_t i = 0;
    for (; i + W <= n; i += W) {
        const Vec<T> v = load(x + i);
        top = v > top ? v : top;
    }
    T largest = x[0];
    for (int j = 0; j < W; ++j) largest = top[j] > largest ? top[j] : largest;
    for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    for (i = 0; i + 1 < n && !(x[i] == largest); ++i) {
    }
    return i;
}

// Sixteen sums side by side.
template <class T>
struct SliceSums {
    static constexpr int W = kWidth<T>, V = kSliceRows / W;
    Vec<T> sum[V];

    SliceSums(const Slice& slice, const T* offset) {
        if (!offset) {
            for (int v = 0; v < V; ++v) sum[v] = Vec<T>{};
        } else if (slice.contiguous) {
            for (int v = 0; v < V; ++v) sum[v] = load(offset + slice.row[0] + v * W);
        } else {
            T start[kSliceRows] = {};
            for (int i = 0; i < slice.n_rows; ++i) start[i] = offset[slice.row[i]];
            for (int v = 0; v < V; ++v) sum[v] = load(start + v * W);
        }
    }
    void add_gathered(const T* value, const T* x, const std::uint32_t* column) {
        for (int v = 0; v < V; ++v) sum[v] += load(value + v * W) * gather(x, column + v * W);
    }
    void add(const T* value, T x) {
        for (int v = 0; v < V; ++v) sum[v] += load(value + v * W) * x;
    }
    void write(const Slice& slice, T* out) const {
        if (slice.contiguous) {
            for (int v = 0; v < V; ++v) store(out + slice.row[0] + v * W, sum[v]);
        } else {
            alignas(64) T end[kSliceRows];
            for (int v = 0; v < V; ++v) store(end + v * W, sum[v]);
            for (int i = 0; i < kSliceRows; ++i) out[slice.row[i]] = end[i];
        }
    }
};

template <class T>
inline void multiply_sparse_row(const FactorView<T>& s, const Slice& slice, const T* offset, const T* x, T* out) {
    SliceSums<T> sums(slice, offset);
    const std::uint32_t* column = s.lane_columns + slice.lane_begin;
    const T* value = s.lane_values + slice.lane_begin;
    for (std::int32_t l = 0; l < slice.longest; ++l)
        sums.add_gathered(value + l * kSliceRows, x, column + l * kSliceRows);
    sums.write(slice, out);
}

// Several dense slices at once: each is a chain of additions, and four chains keep the machine busy.
template <class T>
inline void multiply_dense_rows(const FactorView<T>& s, const Slice* slice, const T* offset, const T* x, T* out) {
    SliceSums<T> a(slice[0], offset), b(slice[1], offset), c(slice[2], offset), d(slice[3], offset);
    const T* const value = s.lane_values + slice[0].lane_begin;
    const std::int64_t step = s.n_columns * kSliceRows;
    for (std::int64_t j = 0; j < s.n_columns; ++j) {
        const T* at = value + j * kSliceRows;
        a.add(at, x[j]);
        b.add(at + step, x[j]);
        c.add(at + 2 * step, x[j]);
        d.add(at + 3 * step, x[j]);
    }
    a.write(slice[0], out);
    b.write(slice[1], out);
    c.write(slice[2], out);
    d.write(slice[3], out);
}

template <class T>
inline void multiply_dense_row(const FactorView<T>& s, const Slice& slice, const T* offset, const T* x, T* out) {
    SliceSums<T> sums(slice, offset);
    for (std::int64_t j = 0; j < s.n_columns; ++j) sums.add(s.lane_values + slice.lane_begin + j * kSliceRows, x[j]);
    sums.write(slice, out);
}

// out = offset + S x, and a zero after it, as in load_row.
template <class T>
void multiply_row(const FactorView<T>& s, const T* offset, const T* x, T* out) {
    for (std::int64_t i = 0; i < s.n_slices; ++i) {
        const Slice& slice = s.slices[i];
        if (!slice.dense) {
            multiply_sparse_row(s, slice, offset, x, out);
        } else if (i + 4 <= s.n_slices && s.slices[i + 1].dense && s.slices[i + 2].dense && s.slices[i + 3].dense) {
            multiply_dense_rows(s, &slice, offset, x, out);
            i += 3;
        } else {
            multiply_dense_row(s, slice, offset, x, out);
        }
    }
    out[s.n_rows] = T(0);
}

}  // namespace quickmeans::QM_ISA
