// The whole product for a tile or for one row: load, apply the factors, hand the results of the last one to a sink.
#pragma once

#include "exact.hpp"
#include "factor.hpp"
#include "row.hpp"

namespace quickmeans::QM_ISA {

// The multiply-adds of n slices for `lanes` rows, if this is one of the longest.
template <class T>
inline std::int64_t work_of(const FactorView<T>& s, const Slice& slice, std::int64_t n, int lanes) {
    return (slice.dense ? s.n_columns : std::int64_t(slice.longest)) * kSliceRows * n * lanes;
}

// A slice and a poll, out of line: polls among the slices would cost the loop below registers.
template <class T, class Sink>
__attribute__((noinline)) void multiply_long_slice(const FactorView<T>& s, const Slice& slice, const T* offset,
                                                   const T* in, Sink& sink, Pacer& pacer) {
    multiply_slice(s, slice, offset, in, sink);
    pacer.did(work_of(s, slice, 1, Sink::kVectors * kWidth<T>));
}

// These slices of a factor, with a poll after them, or after each of them if they take long.
template <class T, class Sink>
inline void multiply_slices(const FactorView<T>& s, const Range& slices, const T* offset, const T* in, Sink& sink,
                            Pacer& pacer) {
    const std::int64_t end = slices.first + slices.count;
    const std::int64_t work = work_of(s, s.slices[end - 1], slices.count, Sink::kVectors * kWidth<T>);
    if (__builtin_expect(work > 8 * kWorkPerPoll, 0)) {
        Sink copy = sink;  // so that the sink itself has no address and can be kept in registers
        for (std::int64_t i = slices.first; i < end; ++i) multiply_long_slice(s, s.slices[i], offset, in, copy, pacer);
        sink = copy;
        return;
    }
    for (std::int64_t i = slices.first; i < end; ++i) multiply_slice(s, s.slices[i], offset, in, sink);
    pacer.did(work);
}

// Apply all factors but the last. Returns the tile that the last one reads.
template <class T, int N>
const T* apply_all_but_last(const ProductJob<T>& job, const Workspace<T>& w, Pacer& pacer) {
    T *in = w.front, *out = w.back;
    for (std::int64_t q = 0; q + 1 < job.n_factors; ++q) {
        const FactorView<T>& s = job.factors[q];
        KeepRow<T, N> sink{out, 0};
        multiply_slices(s, {0, s.n_slices}, static_cast<const T*>(nullptr), in, sink, pacer);
        T* swap = in;
        in = out;
        out = swap;
    }
    return in;
}

template <class T, class Sink>
void apply_last(const ProductJob<T>& job, const T* in, Sink& sink, Pacer& pacer) {
    const FactorView<T>& s = job.factors[job.n_factors - 1];
    multiply_slices(s, {0, s.n_slices}, job.offset, in, sink, pacer);
}

// The last factor, one window of results at a time, by way of a sink that writes them to the window.
template <class T, int N, class Sink>
void store_scores(const ProductJob<T>& job, const T* in, const Range& rows, const Workspace<T>& w, Sink sink,
                  Pacer& pacer) {
    const FactorView<T>& s = job.factors[job.n_factors - 1];
    T* scores = job.scores + rows.first * job.score_row_step;
    for (std::int64_t base = 0, i = 0; base < s.n_rows; base += kWindowRows, ++i) {
        const std::int64_t n = s.n_rows - base < kWindowRows ? s.n_rows - base : kWindowRows;
        sink.first = base;
        multiply_slices(s, {s.windows[i], s.windows[i + 1] - s.windows[i]}, job.offset, in, sink, pacer);
        store_tile(w.window, N * kWidth<T>, n, scores + base * job.score_column_step, job.score_row_step,
                   job.score_column_step, rows.count);
    }
}

template <class T, int N>
void find_largest(const ProductJob<T>& job, const T* in, const Range& rows, Pacer& pacer) {
    Winners<T, N> best;
    Largest<T, N> sink{{}, &best, -1};
    apply_last(job, in, sink, pacer);
    sink.end_run();
    for (std::int64_t i = 0; i < rows.count; ++i) {
        job.best[rows.first + i] = best.score[i / kWidth<T>][i % kWidth<T>];
        job.labels[rows.first + i] = best.label[i / kWidth<T>][i % kWidth<T>];
    }
}

template <class T, int N>
void list_largest(const ProductJob<T>& job, const T* in, const Range& rows, const Workspace<T>& w, Pacer& pacer) {
    ListOfLargest<T, N> sink(w, job.n_listed);
    apply_last(job, in, sink, pacer);
    for (std::int64_t i = 0; i < rows.count; ++i) {
        const std::int64_t row = rows.first + i;
        rank(job, row, job.centers ? plain_row(job.rows, row, w.line) : nullptr, sink.best(i), pacer);
    }
}

template <class T, int N>
struct ProductTile {
    static bool run(const ProductJob<T>& job, const Range& rows, const Workspace<T>& w) {
        const bool fine = load_tile(job.rows, rows.first, rows.count, w.front, N * kWidth<T>, w.staging, job.limit);
        if (job.labels && !fine) return false;
        Pacer pacer{w.poll};
        const T* in = apply_all_but_last<T, N>(job, w, pacer);
        if (!job.labels)
            store_scores<T, N>(job, in, rows, w, KeepRow<T, N>{w.window, 0}, pacer);
        else if (job.n_listed == 1)
            find_largest<T, N>(job, in, rows, pacer);
        else
            list_largest<T, N>(job, in, rows, w, pacer);
        return true;
    }
};

// Apply all factors to one row x, which is in w.front. The scores go to the window.
template <class T>
void apply_to_row(const ProductJob<T>& job, const T* x, const Workspace<T>& w, Pacer& pacer) {
    T* out = w.back;
    for (std::int64_t q = 0; q < job.n_factors; ++q) {
        const bool last = q + 1 == job.n_factors;
        multiply_row(job.factors[q], last ? job.offset : nullptr, x, last ? w.window : out, pacer);
        x = out;
        out = out == w.back ? w.front : w.back;
    }
}

// A single row: scores into the window, then to where the job wants them.
template <class T>
bool product_row(const ProductJob<T>& job, std::int64_t index, const Workspace<T>& w) {
    const T* x = load_row(job.rows, index, w.front);
    if (job.labels && !is_within(x, job.rows.n_columns, job.limit)) return false;
    Pacer pacer{w.poll};
    apply_to_row(job, x, w, pacer);
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
        rank(job, index, job.centers ? plain_row(job.rows, index, w.line) : nullptr, heap, pacer);
    }
    return true;
}

}  // namespace quickmeans::QM_ISA
