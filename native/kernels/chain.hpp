// The whole product for one tile or one row: load, walk through the factors, hand the last one to the job's sink.
#pragma once

#include "exact.hpp"
#include "factor.hpp"
#include "row.hpp"

namespace quickmeans::QM_ISA {

// Apply all the factors but the last; returns the tile that the last one reads.
template <class T, int N>
const T* walk(const Job<T>& job, const Workspace<T>& w) {
    T *in = w.front, *out = w.back;
    for (std::int64_t q = 0; q + 1 < job.n_factors; ++q) {
        const FactorView<T>& s = job.factors[q];
        KeepRow<T, N> sink{out, 0};
        for (std::int64_t i = 0; i < s.n_slices; ++i)
            multiply_slice(s, s.slices[i], static_cast<const T*>(nullptr), in, sink);
        T* swap = in;
        in = out;
        out = swap;
    }
    return in;
}

template <class T, class Sink>
void finish(const Job<T>& job, const T* in, Sink& sink) {
    const FactorView<T>& s = job.factors[job.n_factors - 1];
    for (std::int64_t i = 0; i < s.n_slices; ++i) multiply_slice(s, s.slices[i], job.offset, in, sink);
}

// The last factor, one window of outputs at a time, by way of a sink that writes them to the window.
template <class T, int N, class Sink>
void finish_scores(const Job<T>& job, const T* in, const Range& rows, const Workspace<T>& w, Sink sink) {
    const FactorView<T>& s = job.factors[job.n_factors - 1];
    T* scores = job.scores + rows.first * job.score_row_step;
    for (std::int64_t base = 0, i = 0; base < s.n_rows; base += kWindowRows, ++i) {
        const std::int64_t n = s.n_rows - base < kWindowRows ? s.n_rows - base : kWindowRows;
        sink.first = base;
        for (std::int64_t k = s.windows[i]; k < s.windows[i + 1]; ++k)
            multiply_slice(s, s.slices[k], job.offset, in, sink);
        store_tile(w.window, N * kWidth<T>, n, scores + base * job.score_column_step, job.score_row_step,
                   job.score_column_step, rows.count);
    }
}

template <class T, int N>
void finish_largest(const Job<T>& job, const T* in, const Range& rows) {
    Winners<T, N> best;
    Largest<T, N> sink{{}, &best, -1};
    finish(job, in, sink);
    sink.end_run();
    for (std::int64_t i = 0; i < rows.count; ++i) {
        job.best[rows.first + i] = best.score[i / kWidth<T>][i % kWidth<T>];
        job.labels[rows.first + i] = best.label[i / kWidth<T>][i % kWidth<T>];
    }
}

template <class T, int N>
void finish_largest_few(const Job<T>& job, const T* in, const Range& rows, const Workspace<T>& w) {
    LargestFew<T, N> sink(w, job.n_listed);
    finish(job, in, sink);
    for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int64_t row = rows.first + i;
        rank(job, row, job.centers ? plain_row(job.rows, row, w.line) : nullptr, sink.best(i));
    }
}

template <class T, int N>
struct ProductTile {
    static bool run(const Job<T>& job, const Range& rows, const Workspace<T>& w) {
        const bool fine = load_tile(job.rows, rows.first, rows.count, w.front, N * kWidth<T>, w.staging, job.limit);
        if (job.labels && !fine) return false;
        const T* in = walk<T, N>(job, w);
        if (!job.labels)
            finish_scores<T, N>(job, in, rows, w, KeepRow<T, N>{w.window, 0});
        else if (job.n_listed == 1)
            finish_largest<T, N>(job, in, rows);
        else
            finish_largest_few<T, N>(job, in, rows, w);
        return true;
    }
};

// All the factors for one row x, which stands in w.front; the scores go into the window.
template <class T>
void walk_row(const Job<T>& job, const T* x, const Workspace<T>& w) {
    T* out = w.back;
    for (std::int64_t q = 0; q < job.n_factors; ++q) {
        const bool last = q + 1 == job.n_factors;
        multiply_row(job.factors[q], last ? job.offset : nullptr, x, last ? w.window : out);
        x = out;
        out = out == w.back ? w.front : w.back;
    }
}

// One row, no tile: scores into the window, then what the job asks for.
template <class T>
bool row(const Job<T>& job, std::int64_t index, const Workspace<T>& w) {
    const T* x = load_row(job.rows, index, w.front);
    if (job.labels && !is_within(x, job.rows.n_columns, job.limit)) return false;
    walk_row(job, x, w);
    const std::int64_t n = job.factors[job.n_factors - 1].n_rows;
    if (!job.labels) {
        T* to = job.scores + index * job.score_row_step;
        if (job.score_column_step == 1)
            __builtin_memcpy(to, w.window, std::size_t(n) * sizeof(T));
        else
            for (std::int64_t k = 0; k < n; ++k) to[k * job.score_column_step] = w.window[k];
        return true;
    }
    if (job.n_listed == 1) {
        job.labels[index] = first_largest(w.window, n);
        job.best[index] = w.window[job.labels[index]];
    } else {
        const Heap<T> heap{w.heap_scores, w.heap_labels, job.n_listed};
        heap.clear(n);
        for (std::int64_t k = 0; k < n; ++k) heap.offer(w.window[k], k);
        rank(job, index, job.centers ? plain_row(job.rows, index, w.line) : nullptr, heap);
    }
    return true;
}

}  // namespace quickmeans::QM_ISA
