// The nearest center of every row by way of a shortlist.
//
// Center c_k has the score <x, c_k> + offset_k, and the nearest center has the largest. The product has a row v_k near
// c_k; with the slack e_k = |c_k - v_k| and y = |x - m| (m the mean), its score s_k differs from the exact one, up to a
// constant, by at most y e_k, and mostly by less than z y e_k with a small margin z. So only centers with
//
//     s_k + z y e_k >= max_j (s_j - z y e_j)
//
// can be nearest. These candidates are listed while the last factor is applied, and settled by their exact scores. The
// exact score of the nearest center exceeds that of the product by e_k^2 / 2 on the average (x lies in the direction of
// c_k, so the product misses part of it): `second` and the order of settling take that into account.
#pragma once

#include "chain.hpp"

namespace quickmeans::QM_ISA {

// The search for the nearest center of one row, up to now.
template <class T>
struct RowSearch {
    T best, second, threshold, margin;  // the threshold is the maximum above; the margin is z y
    std::int64_t label, n_listed, n_settled, n_seen;
};

// The candidates of the rows of a tile. Every lane takes the same steps in the same order whatever the tile, so it has
// the same results.
template <class T>
struct Candidates {
    const SettleJob<T>& job;
    const Range& rows;
    const Workspace<T>& w;
    RowSearch<T>* searches;
    Pacer& pacer;

    void begin(std::int64_t lane, T norm) const {
        const T low = -T(__builtin_inf()), high = T(__builtin_inf());
        const T margin = job.shortlist ? T(0) : job.margin * T(__builtin_sqrt(double(norm)));
        searches[lane] = {low, job.shortlist ? high : low, low, margin, 0, 0, 0, 0};
    }

    T error_of(std::int64_t k, T margin) const { return margin * job.slack[k]; }
    // The largest exact score that center k may have.
    T upper_bound(std::int64_t k, T score, T margin) const {
        return score + error_of(k, margin) + T(0.5) * job.slack[k] * job.slack[k];
    }

    // Lanes past the last row repeat it.
    const T* row_of(std::int64_t lane) const {
        return plain_row(job.rows, rows.first + (lane < rows.count ? lane : rows.count - 1), w.line);
    }

    void settle(RowSearch<T>& s, const T* x, std::int64_t k) const {
        const std::int64_t n = job.rows.n_columns;
        const T score = dot(x, job.centers + k * n, n) + job.center_offset[k];
        ++s.n_settled;
        const bool wins = s.best == -T(__builtin_inf()) || comes_before(score, k, s.best, s.label);
        const T loser = wins ? s.best : score;
        if (loser > s.second) s.second = loser;
        if (wins) s.best = score, s.label = k;
        pacer.did(n);
    }

    // Settle the candidates of a lane: the one with the largest score first, then those that may still be better.
    __attribute__((noinline)) void settle_candidates(std::int64_t lane, const T* scores,
                                                     const std::int64_t* labels) const {
        RowSearch<T>& s = searches[lane];
        if (!s.n_listed) return;
        if (s.n_listed == 1 && !s.n_settled && !job.exact_scores) {
            s.best = scores[0] - error_of(labels[0], s.margin);
            s.label = labels[0];
            return;
        }
        const T* x = row_of(lane);
        std::int64_t first = 0;
        for (std::int64_t i = 1; i < s.n_listed; ++i)
            if (comes_before(scores[i], labels[i], scores[first], labels[first])) first = i;
        settle(s, x, labels[first]);
        for (std::int64_t i = 0; i < s.n_listed; ++i) {
            if (i == first) continue;
            const T limit = upper_bound(labels[i], scores[i], s.margin);
            if (job.shortlist || limit >= s.best)
                settle(s, x, labels[i]);
            else if (limit > s.second)
                s.second = limit;
        }
        s.n_listed = 0;
    }

    // Remove the candidates of a lane that the threshold has risen above.
    void prune(std::int64_t lane, T* scores, std::int64_t* labels) const {
        RowSearch<T>& s = searches[lane];
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < s.n_listed; ++i) {
            if (scores[i] + error_of(labels[i], s.margin) >= s.threshold) {
                scores[kept] = scores[i];
                labels[kept++] = labels[i];
            } else {
                const T limit = upper_bound(labels[i], scores[i], s.margin);
                if (limit > s.second) s.second = limit;
            }
        }
        s.n_listed = kept;
    }

    // Put a center on the list of a lane. A full list is pruned, and settled if it is still more than half full.
    void add(std::int64_t lane, T score, std::int64_t k) const {
        RowSearch<T>& s = searches[lane];
        T* scores = w.heap_scores + lane * kListed;
        std::int64_t* labels = w.heap_labels + lane * kListed;
        if (s.n_listed == kListed) {
            prune(lane, scores, labels);
            if (s.n_listed > kListed / 2) settle_candidates(lane, scores, labels);
        }
        ++s.n_seen;
        scores[s.n_listed] = score;
        labels[s.n_listed++] = k;
    }

    // Settle the last candidates of a lane and store its results.
    void end(std::int64_t lane, T norm) const {
        RowSearch<T>& s = searches[lane];
        if (!job.shortlist) {
            T* scores = w.heap_scores + lane * kListed;
            std::int64_t* labels = w.heap_labels + lane * kListed;
            prune(lane, scores, labels);
            settle_candidates(lane, scores, labels);
        } else {
            const std::int64_t at = 2 * lane * job.shortlist;
            s.n_listed = s.n_seen = job.shortlist;
            settle_candidates(lane, w.heap_scores + at, w.heap_labels + at);
        }
        const std::int64_t at = position(job.screen.rows, rows.first + lane);
        job.labels[at] = std::int32_t(s.label);
        job.best[at] = s.best;
        job.second[at] = s.second;
        job.norms[at] = norm;
    }
};

// The sink of a screen. It stores the scores of one window of centers while the threshold rises, and then lists those
// centers of the window that the threshold does not exclude.
template <class T, int N>
struct ScreenSink {
    static constexpr int kVectors = N;
    static constexpr int W = kWidth<T>;
    T* window;
    std::int64_t first;
    const T* slack;
    Vec<T> margin[N], threshold[N];

    ScreenSink(const Candidates<T>& candidates, T* scores) : window(scores), first(0), slack(candidates.job.slack) {
        for (int i = 0; i < N * W; ++i) margin[i / W][i % W] = candidates.searches[i].margin;
        for (int i = 0; i < N; ++i) threshold[i] = splat(-T(__builtin_inf()));
    }
    void take(std::int64_t row, const Vec<T>* v) {
        const T e = slack[row];
        T* to = window + (row - first) * (N * W);
        for (int i = 0; i < N; ++i) {
            const Vec<T> lower = v[i] - margin[i] * e;
            threshold[i] = lower > threshold[i] ? lower : threshold[i];
            store(to + i * W, v[i]);
        }
    }
    // List the candidates among the n centers of the window. `second` becomes at least the upper bound of the others.
    void list(const Candidates<T>& candidates, std::int64_t n, Vec<T>* second) const {
        for (int lane = 0; lane < N * W; ++lane) candidates.searches[lane].threshold = threshold[lane / W][lane % W];
        for (std::int64_t k = 0; k < n; ++k) {
            const T e = slack[first + k], gain = T(0.5) * e * e;
            for (int i = 0; i < N; ++i) {
                const Vec<T> v = load(window + (k * N + i) * W), upper = v + margin[i] * e;
                const auto enters = upper >= threshold[i];
                const Vec<T> lost = enters ? second[i] : upper + gain;
                second[i] = lost > second[i] ? lost : second[i];
                for (unsigned bits = lane_bits<T>(enters); __builtin_expect(bits != 0, 0); bits &= bits - 1) {
                    const int j = __builtin_ctz(bits);
                    candidates.add(i * W + j, window[(k * N + i) * W + j], first + k);
                }
            }
        }
    }
};

// Raise `second` of every search to the upper bound of the centers that were not listed.
template <class T, int N>
void raise_second(const Candidates<T>& candidates, const Vec<T>* second) {
    constexpr int W = kWidth<T>;
    for (int lane = 0; lane < N * W; ++lane) {
        T& known = candidates.searches[lane].second;
        if (second[lane / W][lane % W] > known) known = second[lane / W][lane % W];
    }
}

// Apply the last factor, window by window, and list the candidates of each window.
template <class T, int N>
void list_candidates(const Candidates<T>& candidates, const T* in) {
    const ProductJob<T>& screen = candidates.job.screen;
    const FactorView<T>& s = screen.factors[screen.n_factors - 1];
    ScreenSink<T, N> sink(candidates, candidates.w.window);
    Vec<T> second[N];
    for (int i = 0; i < N; ++i) second[i] = splat(-T(__builtin_inf()));
    for (std::int64_t i = 0; sink.first < s.n_rows; sink.first += kWindowRows, ++i) {
        multiply_slices(s, {s.windows[i], s.windows[i + 1] - s.windows[i]}, screen.offset, in, sink, candidates.pacer);
        const std::int64_t left = s.n_rows - sink.first;
        sink.list(candidates, left < kWindowRows ? left : kWindowRows, second);
    }
    raise_second<T, N>(candidates, second);
}

// Squared distances from the mean of the rows of a tile, for rows that are not projections.
template <class T, int N>
void tile_norms(const SettleJob<T>& job, const T* tile, T* norms) {
    constexpr int W = kWidth<T>;
    Vec<T> sum[N] = {};
    for (std::int64_t j = 0; j < job.screen.rows.n_columns; ++j)
        for (int i = 0; i < N; ++i) {
            const Vec<T> d = load(tile + (j * N + i) * W) - job.mean[j];
            sum[i] += d * d;
        }
    for (int i = 0; i < N; ++i) store(norms + i * W, sum[i]);
}

template <class T>
void count(const SettleJob<T>& job, const RowSearch<T>* searches, std::int64_t n) {
    std::int64_t listed = 0, settled = 0;
    for (std::int64_t lane = 0; lane < n; ++lane) listed += searches[lane].n_seen, settled += searches[lane].n_settled;
    __atomic_fetch_add(job.n_listed, listed, __ATOMIC_RELAXED);
    __atomic_fetch_add(job.n_settled, settled, __ATOMIC_RELAXED);
}

template <class T, int N>
struct SettleTile {
    static bool run(const SettleJob<T>& job, const Range& rows, const Workspace<T>& w) {
        constexpr int kLanes = N * kWidth<T>;
        const ProductJob<T>& screen = job.screen;
        if (!load_tile(screen.rows, rows.first, rows.count, w.front, kLanes, w.staging, screen.limit)) return false;
        T norms[kLanes];
        RowSearch<T> searches[kLanes];
        Pacer pacer{w.poll};
        const Candidates<T> candidates{job, rows, w, searches, pacer};
        if (job.norms_known)
            for (int i = 0; i < kLanes; ++i)
                norms[i] = job.norms[position(screen.rows, rows.first + (i < rows.count ? i : rows.count - 1))];
        else
            tile_norms<T, N>(job, w.front, norms);
        for (int lane = 0; lane < kLanes; ++lane) candidates.begin(lane, norms[lane]);
        const T* in = apply_all_but_last<T, N>(screen, w, pacer);
        if (job.shortlist) {
            ListOfLargest<T, N> sink(w, job.shortlist);
            apply_last(screen, in, sink, pacer);
            for (std::int64_t lane = 0; lane < rows.count; ++lane) sink.best(lane);
        } else {
            list_candidates<T, N>(candidates, in);
        }
        for (std::int64_t lane = 0; lane < rows.count; ++lane) candidates.end(lane, norms[lane]);
        count(job, searches, rows.count);
        return true;
    }
};

// The squared distance of a single row, in the first lane of a vector, so that it is rounded in the same way.
template <class T>
T row_norm(const SettleJob<T>& job, const T* x) {
    Vec<T> sum{};
    for (std::int64_t j = 0; j < job.screen.rows.n_columns; ++j) {
        Vec<T> d = splat(x[j]) - job.mean[j];
        QM_IN_REGISTER(d);
        sum += d * d;
    }
    return sum[0];
}

// The candidates of a single row, in the first lane of a vector; the thresholds of the other lanes exclude everything.
template <class T>
void list_candidates_of_row(const Candidates<T>& candidates, std::int64_t n_centers, const T* scores) {
    constexpr int W = kWidth<T>;
    T window[W];  // of one center
    ScreenSink<T, 1> sink(candidates, window);
    for (int lane = 1; lane < W; ++lane) sink.threshold[0][lane] = T(__builtin_nan(""));
    Vec<T> second = splat(-T(__builtin_inf()));
    for (std::int64_t base = 0; base < n_centers; base += kWindowRows) {
        const std::int64_t end = base + kWindowRows < n_centers ? base + kWindowRows : n_centers;
        for (int pass = 0; pass < 2; ++pass)
            for (std::int64_t k = base; k < end; ++k) {
                Vec<T> v = splat(scores[k]);
                QM_IN_REGISTER(v);
                sink.first = k;
                sink.take(k, &v);
                if (pass) sink.list(candidates, 1, &second);
            }
    }
    raise_second<T, 1>(candidates, &second);
}

// A single row.
template <class T>
bool settle_row(const SettleJob<T>& job, std::int64_t index, const Workspace<T>& w) {
    const ProductJob<T>& screen = job.screen;
    const T* x = load_row(screen.rows, index, w.front);
    if (!is_within(x, screen.rows.n_columns, screen.limit)) return false;
    const T norm = job.norms_known ? job.norms[position(screen.rows, index)] : row_norm(job, x);
    const Range rows{index, 1};
    RowSearch<T> searches[kWidth<T>];
    Pacer pacer{w.poll};
    const Candidates<T> candidates{job, rows, w, searches, pacer};
    for (int lane = 0; lane < kWidth<T>; ++lane) candidates.begin(lane, norm);
    apply_to_row(screen, x, w, pacer);
    const FactorView<T>& last = screen.factors[screen.n_factors - 1];
    if (job.shortlist) {
        const Heap<T> heap{w.heap_scores, w.heap_labels, job.shortlist};
        heap.clear(last.n_rows);
        for (std::int64_t k = 0; k < last.n_rows; ++k) heap.offer(w.window[k], k);
    } else {
        list_candidates_of_row(candidates, last.n_rows, w.window);
    }
    candidates.end(0, norm);
    count(job, searches, 1);
    return true;
}

}  // namespace quickmeans::QM_ISA
