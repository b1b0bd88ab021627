// One factor times one tile: out[row] = offset[row] + sum over e of values[e] * in[columns[e]], for all lanes at once.
#pragma once

#include "sinks.hpp"

namespace quickmeans::QM_ISA {

// Rows of a dense slice in the inner loop: see QM_DENSE_VECTORS in kernels.hpp.
constexpr int kDenseRows = 4;
// Columns of a dense slice between two stores of the sums: 128 x 64 lanes of float32 are 32 KB, the first-level cache.
constexpr int kDenseColumns = 128;

template <class T>
inline Vec<T> start_value(const T* offset, std::int64_t row) {
    return offset ? splat(offset[row]) : Vec<T>{};
}

// Sparse rows: a broadcast coefficient times a contiguous vector, summed in registers.
template <class T, class Sink>
inline void multiply_sparse(const FactorView<T>& s, const Slice& slice, const T* offset, const T* in, Sink& sink) {
    constexpr int N = Sink::kVectors, W = kWidth<T>;
    Sink local = sink;  // a local copy, so that its vectors are kept in registers
    const std::uint32_t* column = s.columns + slice.begin;
    const T* value = s.values + slice.begin;
    for (int r = 0; r < slice.n_rows; ++r) {
        Vec<T> sum[N];
        for (int i = 0; i < N; ++i) sum[i] = start_value(offset, slice.row[r]);
        for (const std::uint32_t* end = column + slice.length[r]; column != end; ++column, ++value) {
            const T* x = in + std::size_t(*column) * (N * W);
            const T c = *value;
            for (int i = 0; i < N; ++i) sum[i] += c * load(x + i * W);
        }
        local.take(slice.row[r], sum);
    }
    sink = local;
}

// Add the columns [from, to) of R rows of a dense slice, for V vectors, to `sums`.
template <class T, int N, int R, int V>
inline void multiply_block(const T* values, std::int64_t from, std::int64_t to, const T* in, T* sums) {
    constexpr int W = kWidth<T>;
    Vec<T> sum[R][V];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) sum[r][v] = load(sums + (r * N + v) * W);
    for (std::int64_t j = from; j < to; ++j) {
        Vec<T> x[V];
        for (int v = 0; v < V; ++v) x[v] = load(in + (j * N + v) * W);
        for (int r = 0; r < R; ++r) {
            const T c = values[j * kSliceRows + r];
            for (int v = 0; v < V; ++v) sum[r][v] += c * x[v];
        }
    }
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < V; ++v) store(sums + (r * N + v) * W, sum[r][v]);
}

// A dense slice is a small matrix product: blocks of columns that stay in the first-level cache, sums in registers.
template <class T, class Sink>
void multiply_dense(const FactorView<T>& s, const Slice& slice, const T* offset, const T* in, Sink& sink) {
    constexpr int N = Sink::kVectors, W = kWidth<T>;
    constexpr int V = N < QM_DENSE_VECTORS ? N : QM_DENSE_VECTORS, R = kDenseRows;
    alignas(64) T sums[kSliceRows * N * W];
    for (int r = 0; r < kSliceRows; ++r)
        for (int i = 0; i < N; ++i)
            store(sums + (r * N + i) * W, r < slice.n_rows ? start_value(offset, slice.row[r]) : Vec<T>{});
    const T* values = s.lane_values + slice.lane_begin;
    for (std::int64_t from = 0; from < s.n_columns; from += kDenseColumns) {
        const std::int64_t to = from + kDenseColumns < s.n_columns ? from + kDenseColumns : s.n_columns;
        for (int r = 0; r < kSliceRows; r += R)
            for (int v = 0; v < N; v += V)
                multiply_block<T, N, R, V>(values + r, from, to, in + v * W, sums + (r * N + v) * W);
    }
    for (int r = 0; r < slice.n_rows; ++r) {
        Vec<T> sum[N];
        for (int i = 0; i < N; ++i) sum[i] = load(sums + (r * N + i) * W);
        sink.take(slice.row[r], sum);
    }
}

template <class T, class Sink>
inline void multiply_slice(const FactorView<T>& s, const Slice& slice, const T* offset, const T* in, Sink& sink) {
    if (slice.dense)
        multiply_dense(s, slice, offset, in, sink);
    else
        multiply_sparse(s, slice, offset, in, sink);
}

}  // namespace quickmeans::QM_ISA
