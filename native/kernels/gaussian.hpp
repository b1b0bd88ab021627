// Gaussian kernel values between rows x and the rows v_k of a product, computed from the products in the registers:
//
//   exp(-gamma |x - m - v_k|^2) = exp(2 gamma (<x - m, v_k> - |v_k|^2 / 2 - |x - m|^2 / 2)).
//
// The mean m is subtracted from the tile, so that no digits are lost to cancellation.
#pragma once

#include "chain.hpp"
#include "exponential.hpp"

namespace quickmeans::QM_ISA {

// exp(-gamma d^2) from v = -d^2 / 2, which rounding may have left above zero.
template <class T>
inline Vec<T> gaussian_of(Vec<T> v, T gamma) {
    v = v < Vec<T>{} ? v : Vec<T>{};
    return exponential<T>(v * (2 * gamma));
}

template <class T, int N>
struct GaussianRow {
    static constexpr int kVectors = N;
    T* out;
    const T* half_squares;  // |x - m|^2 / 2, one per lane
    T gamma;
    std::int64_t first;
    void take(std::int64_t row, const Vec<T>* v) {
        constexpr int W = kWidth<T>;
        T* to = out + (row - first) * (N * W);
        for (int i = 0; i < N; ++i) store(to + i * W, gaussian_of<T>(v[i] - load(half_squares + i * W), gamma));
    }
};

// Subtract the mean from the tile, and compute half the squared norm of each row.
template <class T, int N>
void center_tile(const GaussianJob<T>& job, T* tile, T* half_squares) {
    constexpr int W = kWidth<T>;
    Vec<T> sum[N] = {};
    for (std::int64_t j = 0; j < job.product.rows.n_columns; ++j)
        for (int i = 0; i < N; ++i) {
            const Vec<T> d = load(tile + (j * N + i) * W) - job.mean[j];
            store(tile + (j * N + i) * W, d);
            sum[i] += d * d;
        }
    for (int i = 0; i < N; ++i) store(half_squares + i * W, sum[i] * T(0.5));
}

template <class T, int N>
struct GaussianTile {
    static bool run(const GaussianJob<T>& job, const Range& rows, const Workspace<T>& w) {
        constexpr int kLanes = N * kWidth<T>;
        const ProductJob<T>& product = job.product;
        if (!load_tile(product.rows, rows.first, rows.count, w.front, kLanes, w.staging, product.limit)) return false;
        T half_squares[kLanes];
        center_tile<T, N>(job, w.front, half_squares);
        Pacer pacer{w.poll};
        const T* in = apply_all_but_last<T, N>(product, w, pacer);
        store_scores<T, N>(product, in, rows, w, GaussianRow<T, N>{w.window, half_squares, job.gamma, 0}, pacer);
        return true;
    }
};

// A single row, in the first lane of a vector, so that it is rounded in the same way.
template <class T>
bool gaussian_row(const GaussianJob<T>& job, std::int64_t index, const Workspace<T>& w) {
    constexpr int W = kWidth<T>;
    const ProductJob<T>& product = job.product;
    load_row(product.rows, index, w.front);
    if (!is_within(w.front, product.rows.n_columns, product.limit)) return false;
    Vec<T> sum{};
    for (std::int64_t j = 0; j < product.rows.n_columns; ++j) {
        Vec<T> d = splat(w.front[j]) - job.mean[j];
        QM_IN_REGISTER(d);
        sum += d * d;
        w.front[j] = d[0];
    }
    const T half_square = sum[0] * T(0.5);
    Pacer pacer{w.poll};
    apply_to_row(product, w.front, w, pacer);
    const std::int64_t n = product.factors[product.n_factors - 1].n_rows;
    for (std::int64_t k = 0; k < n; k += W)  // the window has sixteen places more than n
        store(w.window + k, gaussian_of<T>(load(w.window + k) - half_square, job.gamma));
    __builtin_memcpy(product.scores + index * product.score_row_step, w.window, std::size_t(n) * sizeof(T));
    return true;
}

}  // namespace quickmeans::QM_ISA
