// The nearest centre of every row by way of a shortlist.
//
// Centre c_k has the score <x, c_k> + offset_k, the nearest one the largest. The product has rows v_k near c_k, and its
// scores s_k are wrong by <x - m, c_k - v_k> and a constant: with e_k = |c_k - v_k| (the slack) and y = |x - m| (m the
// mean) no more than y e_k, and most often not more than a small share z (the margin) of it. So centre k can be
// nearest only if s_k + z y e_k >= max_j (s_j - z y e_j). Those that can are listed while the last factor is being
// applied, and settled by their exact scores. There the nearest of all centres gains e^2 / 2 on the average (x lies in
// its direction, so the product misses a part of it), which is one more reason to turn a candidate away.
#pragma once

#include "chain.hpp"

namespace quickmeans::QM_ISA {

// What has been found out about one row.
template <class T>
struct Contest {
    T best, second, bar, margin;
    std::int64_t label, n_listed, n_settled, n_seen;
};

// The candidates of the rows of a tile. Lane after lane the same steps in the same order whatever the tile, so the same
// results.
template <class T>
struct Lists {
    const SettleJob<T>& job;
    const Range& rows;
    const Workspace<T>& w;
    Contest<T>* contests;

    void begin(std::int64_t lane, T norm) const {
        const T low = -T(__builtin_inf()), high = T(__builtin_inf());
        const T margin = job.shortlist ? T(0) : job.margin * T(__builtin_sqrt(double(norm)));
        contests[lane] = {low, job.shortlist ? high : low, low, margin, 0, 0, 0, 0};
    }

    T slack_of(std::int64_t k, T margin) const { return margin * job.slack[k]; }
    // The highest exact score that centre k may have.
    T most(std::int64_t k, T score, T margin) const {
        return score + slack_of(k, margin) + T(0.5) * job.slack[k] * job.slack[k];
    }

    // Lanes past the last row repeat it.
    const T* row_of(std::int64_t lane) const {
        return plain_row(job.rows, rows.first + (lane < rows.count ? lane : rows.count - 1), w.line);
    }

    void settle(Contest<T>& c, const T* x, std::int64_t k) const {
        const std::int64_t n = job.rows.n_columns;
        const T score = dot(x, job.centers + k * n, n) + job.center_offset[k];
        ++c.n_settled;
        const bool wins = c.best == -T(__builtin_inf()) || comes_before(score, k, c.best, c.label);
        const T loser = wins ? c.best : score;
        if (loser > c.second) c.second = loser;
        if (wins) c.best = score, c.label = k;
    }

    // Settle the candidates of a lane: the most promising first, then those that may still be better.
    __attribute__((noinline)) void settle_candidates(std::int64_t lane, const T* scores,
                                                     const std::int64_t* labels) const {
        Contest<T>& c = contests[lane];
        if (!c.n_listed) return;
        if (c.n_listed == 1 && !c.n_settled && !job.exact_scores) {
            c.best = scores[0] - slack_of(labels[0], c.margin);
            c.label = labels[0];
            return;
        }
        const T* x = row_of(lane);
        std::int64_t first = 0;
        for (std::int64_t i = 1; i < c.n_listed; ++i)
            if (comes_before(scores[i], labels[i], scores[first], labels[first])) first = i;
        settle(c, x, labels[first]);
        for (std::int64_t i = 0; i < c.n_listed; ++i) {
            if (i == first) continue;
            const T limit = most(labels[i], scores[i], c.margin);
            if (job.shortlist || limit >= c.best)
                settle(c, x, labels[i]);
            else if (limit > c.second)
                c.second = limit;
        }
        c.n_listed = 0;
    }

    // Make room: forget those that the bar has risen above; if that does not help, settle all.
    void shrink(std::int64_t lane, T* scores, std::int64_t* labels) const {
        Contest<T>& c = contests[lane];
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < c.n_listed; ++i) {
            if (scores[i] + slack_of(labels[i], c.margin) >= c.bar) {
                scores[kept] = scores[i];
                labels[kept++] = labels[i];
            } else {
                const T limit = most(labels[i], scores[i], c.margin);
                if (limit > c.second) c.second = limit;
            }
        }
        c.n_listed = kept;
    }

    void add(std::int64_t lane, T score, std::int64_t k) const {
        Contest<T>& c = contests[lane];
        T* scores = w.heap_scores + lane * kListed;
        std::int64_t* labels = w.heap_labels + lane * kListed;
        if (c.n_listed == kListed) {
            shrink(lane, scores, labels);
            if (c.n_listed > kListed / 2) settle_candidates(lane, scores, labels);
        }
        ++c.n_seen;
        scores[c.n_listed] = score;
        labels[c.n_listed++] = k;
    }

    // The result of a lane, once its last candidates are settled.
    void end(std::int64_t lane, T norm) const {
        Contest<T>& c = contests[lane];
        if (!job.shortlist) {
            T* scores = w.heap_scores + lane * kListed;
            std::int64_t* labels = w.heap_labels + lane * kListed;
            shrink(lane, scores, labels);
            settle_candidates(lane, scores, labels);
        } else {
            const std::int64_t at = 2 * lane * job.shortlist;
            c.n_listed = c.n_seen = job.shortlist;
            settle_candidates(lane, w.heap_scores + at, w.heap_labels + at);
        }
        const std::int64_t at = position(job.screen.rows, rows.first + lane);
        job.labels[at] = std::int32_t(c.label);
        job.best[at] = c.best;
        job.second[at] = c.second;
        job.norms[at] = norm;
    }
};

// The screen: scores are kept, one window of centres at a time, while the best lower bound rises; then the window is
// looked through for those within margin of it.
template <class T, int N>
struct Screen {
    static constexpr int kVectors = N;
    static constexpr int W = kWidth<T>;
    T* window;
    std::int64_t first;
    const T* slack;
    Vec<T> margin[N], bar[N];

    Screen(const Lists<T>& lists, T* scores) : window(scores), first(0), slack(lists.job.slack) {
        for (int i = 0; i < N * W; ++i) margin[i / W][i % W] = lists.contests[i].margin;
        for (int i = 0; i < N; ++i) bar[i] = splat(-T(__builtin_inf()));
    }
    void take(std::int64_t row, const Vec<T>* v) {
        const T e = slack[row];
        T* to = window + (row - first) * (N * W);
        for (int i = 0; i < N; ++i) {
            const Vec<T> lower = v[i] - margin[i] * e;
            bar[i] = lower > bar[i] ? lower : bar[i];
            store(to + i * W, v[i]);
        }
    }
    // List the candidates among the n centres of the window; `second` rises to what those turned away may have.
    void list(const Lists<T>& lists, std::int64_t n, Vec<T>* second) const {
        for (int lane = 0; lane < N * W; ++lane) lists.contests[lane].bar = bar[lane / W][lane % W];
        for (std::int64_t k = 0; k < n; ++k) {
            const T e = slack[first + k], gain = T(0.5) * e * e;
            for (int i = 0; i < N; ++i) {
                const Vec<T> v = load(window + (k * N + i) * W), upper = v + margin[i] * e;
                const auto enters = upper >= bar[i];
                const Vec<T> lost = enters ? second[i] : upper + gain;
                second[i] = lost > second[i] ? lost : second[i];
                for (unsigned bits = lane_bits<T>(enters); __builtin_expect(bits != 0, 0); bits &= bits - 1) {
                    const int j = __builtin_ctz(bits);
                    lists.add(i * W + j, window[(k * N + i) * W + j], first + k);
                }
            }
        }
    }
};

// What those turned away may have, into the contests.
template <class T, int N>
void note_second(const Lists<T>& lists, const Vec<T>* second) {
    constexpr int W = kWidth<T>;
    for (int lane = 0; lane < N * W; ++lane) {
        T& known = lists.contests[lane].second;
        if (second[lane / W][lane % W] > known) known = second[lane / W][lane % W];
    }
}

// The last factor, window by window.
template <class T, int N>
void list_candidates(const Lists<T>& lists, const T* in) {
    const Job<T>& screen = lists.job.screen;
    const FactorView<T>& s = screen.factors[screen.n_factors - 1];
    Screen<T, N> sink(lists, lists.w.window);
    Vec<T> second[N];
    for (int i = 0; i < N; ++i) second[i] = splat(-T(__builtin_inf()));
    for (std::int64_t i = 0; sink.first < s.n_rows; sink.first += kWindowRows, ++i) {
        for (std::int64_t k = s.windows[i]; k < s.windows[i + 1]; ++k)
            multiply_slice(s, s.slices[k], screen.offset, in, sink);
        const std::int64_t left = s.n_rows - sink.first;
        sink.list(lists, left < kWindowRows ? left : kWindowRows, second);
    }
    note_second<T, N>(lists, second);
}

// Squared distances from the mean of the rows of a tile; only asked for if they are the rows themselves.
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
void count(const SettleJob<T>& job, const Contest<T>* contests, std::int64_t n) {
    std::int64_t listed = 0, settled = 0;
    for (std::int64_t lane = 0; lane < n; ++lane) listed += contests[lane].n_seen, settled += contests[lane].n_settled;
    __atomic_fetch_add(job.n_listed, listed, __ATOMIC_RELAXED);
    __atomic_fetch_add(job.n_settled, settled, __ATOMIC_RELAXED);
}

template <class T, int N>
struct SettleTile {
    static bool run(const SettleJob<T>& job, const Range& rows, const Workspace<T>& w) {
        constexpr int kLanes = N * kWidth<T>;
        const Job<T>& screen = job.screen;
        if (!load_tile(screen.rows, rows.first, rows.count, w.front, kLanes, w.staging, screen.limit)) return false;
        T norms[kLanes];
        Contest<T> contests[kLanes];
        const Lists<T> lists{job, rows, w, contests};
        if (job.norms_known)
            for (int i = 0; i < kLanes; ++i)
                norms[i] = job.norms[position(screen.rows, rows.first + (i < rows.count ? i : rows.count - 1))];
        else
            tile_norms<T, N>(job, w.front, norms);
        for (int lane = 0; lane < kLanes; ++lane) lists.begin(lane, norms[lane]);
        const T* in = walk<T, N>(screen, w);
        if (job.shortlist) {
            LargestFew<T, N> sink(w, job.shortlist);
            finish(screen, in, sink);
            for (std::int64_t lane = 0; lane < rows.count; ++lane) sink.best(lane);
        } else {
            list_candidates<T, N>(lists, in);
        }
        for (std::int64_t lane = 0; lane < rows.count; ++lane) lists.end(lane, norms[lane]);
        count(job, contests, rows.count);
        return true;
    }
};

// The same for one row: in the first lane of a vector, so that it is rounded in the same way.
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

// The candidates of one row: the row in the first lane of a tile, the others closed.
template <class T>
void list_row(const Lists<T>& lists, std::int64_t n_centers, const T* scores) {
    constexpr int W = kWidth<T>;
    T window[W];  // one centre at a time
    Screen<T, 1> sink(lists, window);
    for (int lane = 1; lane < W; ++lane) sink.bar[0][lane] = T(__builtin_nan(""));  // nothing reaches that
    Vec<T> second = splat(-T(__builtin_inf()));
    for (std::int64_t base = 0; base < n_centers; base += kWindowRows) {
        const std::int64_t end = base + kWindowRows < n_centers ? base + kWindowRows : n_centers;
        for (int pass = 0; pass < 2; ++pass)
            for (std::int64_t k = base; k < end; ++k) {
                Vec<T> v = splat(scores[k]);
                QM_IN_REGISTER(v);
                sink.first = k;
                sink.take(k, &v);
                if (pass) sink.list(lists, 1, &second);
            }
    }
    note_second<T, 1>(lists, &second);
}

// One row alone.
template <class T>
bool settle_row(const SettleJob<T>& job, std::int64_t index, const Workspace<T>& w) {
    const Job<T>& screen = job.screen;
    const T* x = load_row(screen.rows, index, w.front);
    if (!is_within(x, screen.rows.n_columns, screen.limit)) return false;
    const T norm = job.norms_known ? job.norms[position(screen.rows, index)] : row_norm(job, x);
    const Range rows{index, 1};
    Contest<T> contests[kWidth<T>];
    const Lists<T> lists{job, rows, w, contests};
    for (int lane = 0; lane < kWidth<T>; ++lane) lists.begin(lane, norm);
    walk_row(screen, x, w);
    const FactorView<T>& last = screen.factors[screen.n_factors - 1];
    if (job.shortlist) {
        const Heap<T> heap{w.heap_scores, w.heap_labels, job.shortlist};
        heap.clear(last.n_rows);
        for (std::int64_t k = 0; k < last.n_rows; ++k) heap.offer(w.window[k], k);
    } else {
        list_row(lists, last.n_rows, w.window);
    }
    lists.end(0, norm);
    count(job, contests, 1);
    return true;
}

}  // namespace quickmeans::QM_ISA
