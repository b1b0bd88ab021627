// A single row: the same sums in the same order as in a tile, so the same bits, without a transpose.
#pragma once

#include "intrinsics.hpp"
#include "pacer.hpp"
#include "sinks.hpp"

namespace quickmeans::QM_ISA {

// The row, converted into `buffer`, and a zero after it for the entries that fill up short rows of a slice.
template <class T>
const T* load_row(const RowsView& x, std::int64_t index, T* buffer) {
    converter<T>(x.scalar)(row_at(x, index), x.column_stride, buffer, x.n_columns);
    buffer[x.n_columns] = T(0);
    return buffer;
}

template <class T>
bool is_within(const T* x, std::int64_t n, T limit) {
    constexpr int W = kWidth<T>;
    RangeCheck<T> check;
    std::int64_t i = 0;
    for (; i + W <= n; i += W) check.see(0, load(x + i));
    bool fine = check.within(limit);
    for (; i < n; ++i) fine &= x[i] >= -limit && x[i] <= limit;
    return fine;
}

// The lowest index of the largest of n finite numbers.
template <class T>
std::int64_t first_largest(const T* x, std::int64_t n) {
    constexpr int W = kWidth<T>;
    Vec<T> top = splat(-T(__builtin_inf()));
    std::int64_t i = 0;
    for (; i + W <= n; i += W) {
        const Vec<T> v = load(x + i);
        top = v > top ? v : top;
    }
    T largest = -T(__builtin_inf());
    for (int j = 0; j < W; ++j) largest = top[j] > largest ? top[j] : largest;
    for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    for (i = 0; i < n; ++i)
        if (x[i] == largest) return i;
    return 0;
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

// The entries [from, to) of every row of a slice.
template <class T>
inline void add_entries(const FactorView<T>& s, const Slice& slice, std::int32_t from, std::int32_t to, const T* x,
                        SliceSums<T>& sums) {
    for (std::int64_t at = slice.lane_begin + std::int64_t(from) * kSliceRows; from < to; ++from, at += kSliceRows)
        sums.add_gathered(s.lane_values + at, x, s.lane_columns + at);
}

// Two slices at once: while one waits for its gathers, the other adds.
template <class T>
inline void multiply_sparse_rows(const FactorView<T>& s, const Slice* slice, const T* offset, const T* x, T* out) {
    SliceSums<T> a(slice[0], offset), b(slice[1], offset);
    const std::int32_t both = slice[0].longest < slice[1].longest ? slice[0].longest : slice[1].longest;
    for (std::int32_t l = 0; l < both; ++l) {
        add_entries(s, slice[0], l, l + 1, x, a);
        add_entries(s, slice[1], l, l + 1, x, b);
    }
    add_entries(s, slice[0], both, slice[0].longest, x, a);
    add_entries(s, slice[1], both, slice[1].longest, x, b);
    a.write(slice[0], out);
    b.write(slice[1], out);
}

template <class T>
inline void multiply_sparse_row(const FactorView<T>& s, const Slice& slice, const T* offset, const T* x, T* out) {
    SliceSums<T> sums(slice, offset);
    add_entries(s, slice, 0, slice.longest, x, sums);
    sums.write(slice, out);
}

// Four dense slices at once: each is a chain of additions, and four chains hide the latency of an addition.
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

// The number of slices, of the next n and at most `most`, that are of the same kind as the first.
inline int alike(const Slice* slice, std::int64_t n, int most) {
    int k = 1;
    while (k < most && k < n && slice[k].dense == slice[0].dense) ++k;
    return k;
}

// out = offset + S x, and a zero after it, as in load_row.
template <class T>
void multiply_row(const FactorView<T>& s, const T* offset, const T* x, T* out, Pacer& pacer) {
    for (std::int64_t i = 0; i < s.n_slices;) {
        const Slice* slice = s.slices + i;
        const int most = slice->dense ? 4 : 2;
        const bool full = alike(slice, s.n_slices - i, most) == most;
        if (slice->dense)
            full ? multiply_dense_rows(s, slice, offset, x, out) : multiply_dense_row(s, *slice, offset, x, out);
        else
            full ? multiply_sparse_rows(s, slice, offset, x, out) : multiply_sparse_row(s, *slice, offset, x, out);
        i += full ? most : 1;
        pacer.did((slice->dense ? s.n_columns : std::int64_t(slice->longest)) * kSliceRows * most);
    }
    out[s.n_rows] = T(0);
}

}  // namespace quickmeans::QM_ISA
