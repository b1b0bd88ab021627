// Sinks take the results of a factor, row by row, for all lanes of the tile: a kernel calls `take(row, v)` for each.
#pragma once

#include "intrinsics.hpp"
#include "tile.hpp"

namespace quickmeans::QM_ISA {

template <class T>
struct IndexOf {
    using type = std::int32_t;
};
template <>
struct IndexOf<double> {
    using type = std::int64_t;
};

// Store the row, counted from `first`: the input of the next factor, or a window of the result.
template <class T, int N>
struct KeepRow {
    static constexpr int kVectors = N;
    T* out;
    std::int64_t first;
    void take(std::int64_t row, const Vec<T>* v) {
        T* to = out + (row - first) * (N * kWidth<T>);
        for (int i = 0; i < N; ++i) store(to + i * kWidth<T>, v[i]);
    }
};

// The largest score of each lane so far, and its row.
template <class T, int N>
struct Winners {
    using Index = typename IndexOf<T>::type;
    Vec<T> score[N];
    Vec<Index> label[N];

    Winners() { clear(); }
    void clear() {
        for (int i = 0; i < N; ++i) score[i] = splat(-T(__builtin_inf()));
        for (int i = 0; i < N; ++i) label[i] = Vec<Index>{};
    }
    void merge(const Winners& other) {
        for (int i = 0; i < N; ++i) {
            const auto loses =
                (other.score[i] > score[i]) | ((other.score[i] == score[i]) & (other.label[i] < label[i]));
            score[i] = loses ? other.score[i] : score[i];
            label[i] = loses ? other.label[i] : label[i];
        }
    }
};

// The largest product of each lane. Within a run the rows come in ascending order, so the first of equals stays. A row
// below the last one begins a new run, and the winners of the old run are merged with those so far.
template <class T, int N>
struct Largest {
    static constexpr int kVectors = N;
    using Index = typename IndexOf<T>::type;
    Winners<T, N> run;
    Winners<T, N>* best;
    std::int64_t last;

    void end_run() {
        best->merge(run);
        run.clear();
    }
    void take(std::int64_t row, const Vec<T>* v) {
        if (__builtin_expect(row < last, 0)) end_run();
        last = row;
        Vec<Index> here = splat(Index(row));
        QM_IN_REGISTER(here);
        for (int i = 0; i < N; ++i) {
            const auto wins = v[i] > run.score[i];
            run.score[i] = wins ? v[i] : run.score[i];
            run.label[i] = wins ? here : run.label[i];
        }
    }
};

// True if (score, label) comes before (other, other_label): larger first, then the lower index.
template <class T>
inline bool comes_before(T score, std::int64_t label, T other, std::int64_t other_label) {
    return score > other || (score == other && label < other_label);
}

// The m largest scores of one lane, in a binary heap whose root is the smallest of them.
template <class T>
struct Heap {
    T* scores;
    std::int64_t* labels;
    std::int64_t size;

    void sift(std::int64_t at, std::int64_t n, T score, std::int64_t label) const {
        for (std::int64_t child; (child = 2 * at + 1) < n; at = child) {
            if (child + 1 < n && comes_before(scores[child], labels[child], scores[child + 1], labels[child + 1]))
                ++child;
            if (!comes_before(score, label, scores[child], labels[child])) break;
            scores[at] = scores[child];
            labels[at] = labels[child];
        }
        scores[at] = score;
        labels[at] = label;
    }
    void clear(std::int64_t n_labels) const {
        for (std::int64_t i = 0; i < size; ++i) scores[i] = -T(__builtin_inf()), labels[i] = n_labels;
    }
    void offer(T score, std::int64_t label) const {
        if (comes_before(score, label, scores[0], labels[0])) sift(0, size, score, label);
    }
    void make() const {
        for (std::int64_t i = size / 2; i-- > 0;) sift(i, size, scores[i], labels[i]);
    }
    void sort() const {
        for (std::int64_t n = size - 1; n > 0; --n) {
            const T score = scores[n];
            const std::int64_t label = labels[n];
            scores[n] = scores[0];
            labels[n] = labels[0];
            sift(0, n, score, label);
        }
    }
};

// Bring the m largest of n scores to the front, in any order, the smallest of them last (quickselect).
template <class T>
void select_best(T* scores, std::int64_t* labels, std::int64_t n, std::int64_t m) {
    const auto swap = [&](std::int64_t i, std::int64_t j) {
        const T score = scores[i];
        const std::int64_t label = labels[i];
        scores[i] = scores[j], labels[i] = labels[j];
        scores[j] = score, labels[j] = label;
    };
    const auto before = [&](std::int64_t i, std::int64_t j) {
        return comes_before(scores[i], labels[i], scores[j], labels[j]);
    };
    std::int64_t low = 0, high = n - 1;
    while (low < high) {
        // The median of three is the pivot, at the end of the range.
        const std::int64_t middle = low + (high - low) / 2;
        if (before(middle, low)) swap(middle, low);
        if (before(high, low)) swap(high, low);
        if (before(middle, high)) swap(middle, high);
        std::int64_t at = low;
        for (std::int64_t i = low; i < high; ++i)
            if (before(i, high)) swap(i, at++);
        swap(at, high);
        if (at == m - 1) return;
        if (at < m - 1)
            low = at + 1;
        else
            high = at - 1;
    }
}

// The m largest products of each lane. One comparison with the m-th largest so far excludes most rows. The rest go on a
// list of 2 m, which is cut to its larger half when it is full.
template <class T, int N>
struct ListOfLargest {
    static constexpr int kVectors = N;
    static constexpr int W = kWidth<T>;
    T* scores;  // lanes x 2 size
    std::int64_t* labels;
    std::int64_t size;
    std::int32_t count[N * W];
    T threshold[N * W];  // the m-th largest so far

    ListOfLargest(const Workspace<T>& w, std::int64_t n_best)
        : scores(w.heap_scores), labels(w.heap_labels), size(n_best) {
        for (int lane = 0; lane < N * W; ++lane) count[lane] = 0, threshold[lane] = -T(__builtin_inf());
    }
    void take(std::int64_t row, const Vec<T>* v) {
        for (int i = 0; i < N; ++i) {
            const unsigned enters = lane_bits<T>(v[i] >= load(threshold + i * W));
            if (enters) list(i * W, enters, row, v[i]);
        }
    }
    __attribute__((noinline)) void list(int first, unsigned lanes, std::int64_t row, Vec<T> v) {
        T value[W];
        store(value, v);
        for (; lanes; lanes &= lanes - 1) {
            const int j = __builtin_ctz(lanes), lane = first + j;
            const std::int64_t at = 2 * size * lane + count[lane]++;
            scores[at] = value[j];
            labels[at] = row;
            if (count[lane] == 2 * size) cut(lane);
        }
    }
    void cut(int lane) {
        T* own = scores + 2 * size * lane;
        select_best(own, labels + 2 * size * lane, count[lane], size);
        count[lane] = std::int32_t(size);
        threshold[lane] = own[size - 1];
    }
    // The m largest of a lane, after the last row.
    Heap<T> best(std::int64_t lane) {
        if (count[lane] > size) cut(int(lane));
        return {scores + 2 * size * lane, labels + 2 * size * lane, size};
    }
};

}  // namespace quickmeans::QM_ISA
