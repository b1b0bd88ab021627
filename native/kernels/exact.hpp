// Exact scores of single centers: rows of the array times rows of the centers.
#pragma once

#include "pacer.hpp"
#include "sinks.hpp"

namespace quickmeans::QM_ISA {

template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
    constexpr int W = kWidth<T>, C = 4;
    Vec<T> sum[C] = {};
    std::int64_t i = 0;
    for (; i + C * W <= n; i += C * W)
        for (int c = 0; c < C; ++c) sum[c] += load(x + i + c * W) * load(y + i + c * W);
    for (; i + W <= n; i += W) sum[0] += load(x + i) * load(y + i);
    const Vec<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    T total = 0;
    for (int j = 0; j < W; ++j) total += all[j];
    for (; i < n; ++i) total += x[i] * y[i];
    return total;
}

// Row i in place, or converted into `line`.
template <class T>
const T* plain_row(const RowsView& x, std::int64_t i, T* line) {
    const char* at = row_at(x, i);
    const bool direct = x.scalar == kScalarOf<T> && x.column_stride == std::int64_t(sizeof(T)) &&
                        reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0;
    if (direct) return reinterpret_cast<const T*>(at);
    converter<T>(x.scalar)(at, x.column_stride, line, x.n_columns);
    return line;
}

// The results of one row from its list: in the order of the scores listed, or by exact scores in any order.
template <class T>
void rank(const ProductJob<T>& job, std::int64_t row, const T* x, const Heap<T>& listed, Pacer& pacer) {
    const std::int64_t n = job.rows.n_columns;
    if (job.centers) {
        for (std::int64_t i = 0; i < listed.size; ++i) {
            const std::int64_t k = listed.labels[i];
            listed.scores[i] = dot(x, job.centers + k * n, n) + job.center_offset[k];
            pacer.did(n);
        }
        select_best(listed.scores, listed.labels, listed.size, job.n_best);
    } else {
        listed.make();
        listed.sort();
    }
    for (std::int64_t i = 0; i < job.n_best; ++i) {
        job.best[row * job.n_best + i] = listed.scores[i];
        job.labels[row * job.n_best + i] = listed.labels[i];
    }
}

}  // namespace quickmeans::QM_ISA
