// The rows of a chunk and their candidates, of which exact scores decide (see groups.hpp).
#pragma once

#include "exact.hpp"
#include "group_points.hpp"

namespace quickmeans::QM_ISA {

// The rows of a chunk: `rows` are numbers in the order of the block.
template <class T>
struct GroupChunk {
    const GroupJob<T>& job;
    const GroupBlock<T>& block;
    const Range& rows;
    GroupMemory<T>& m;
    Pacer& pacer;

    std::int64_t in_block(std::int64_t i) const { return block.order[rows.first + i]; }
    const T* point(std::int64_t i) const { return block.points + in_block(i) * job.n_coordinates; }
    std::int64_t row(std::int64_t i) const { return block.first + in_block(i); }
    std::int64_t place(std::int64_t i) const { return position(job.rows, row(i)); }
    T norm(std::int64_t i) const { return job.norms[place(i)]; }
    T square(std::int64_t i) const { return job.spherical ? T(1) : norm(i); }  // |y|^2
    T rounding(std::int64_t i) const { return job.rounding * (square(i) + job.scale); }

    // The largest distance of points that reaches the threshold.
    T room(std::int64_t i) const {
        const T square_of_room = square(i) - 2 * m.search[i].threshold + 2 * rounding(i);
        return square_of_room > 0 ? T(__builtin_sqrt(double(square_of_room))) : T(0);
    }

    // Start with what is known of the row.
    void begin(std::int64_t i) const {
        const T low = -T(__builtin_inf());
        GroupSearch<T>& s = m.search[i];
        s = {low, low, low, 0, 0, 0, 0, 0, 0, 0, 0};
        if (!job.known) return;
        s.label = job.labels[place(i)];
        s.best = job.best[place(i)];
        raise(i, s.best);
        for (std::int64_t d = 0; d < job.n_narrow; ++d) s.inside += point(i)[d] * point(i)[d];
    }

    // The least score of a point, plus its gain, that may belong to a center with this exact score.
    T least(std::int64_t i, T score) const {
        const T length = T(__builtin_sqrt(double(norm(i))));
        return (job.spherical && length > 0 ? score / length - T(0.5) : score) - 2 * rounding(i);
    }

    // Raise the threshold of a row as far as an exact score allows.
    void raise(std::int64_t i, T score) const {
        const T value = least(i, score) - job.largest_gain;
        if (value > m.search[i].threshold) m.search[i].threshold = value;
    }

    void settle(std::int64_t i, const T* x, std::int64_t k) const {
        GroupSearch<T>& s = m.search[i];
        const std::int64_t n = job.rows.n_columns;
        const T score = dot(x, job.centers + k * n, n) + job.center_offset[k];
        ++s.n_settled;
        pacer.did(n);
        if (s.best == -T(__builtin_inf())) {
            s.best = score, s.label = std::int32_t(k);
            return;
        }
        if (k == s.label) return;
        const bool wins = comes_before(score, k, s.best, std::int64_t(s.label));
        const T loser = wins ? s.best : score;
        if (loser > s.second) s.second = loser;
        if (wins) s.best = score, s.label = std::int32_t(k);
    }

    // Settle the best candidate of the first group, whose distance says how far the row looks.
    void look_once(std::int64_t i) const {
        GroupSearch<T>& s = m.search[i];
        if (s.best == -T(__builtin_inf())) {
            const int at = largest_listed(i);
            const std::int32_t label = take(i, at);
            settle(i, plain_row(job.rows, row(i), m.line), label);
            raise(i, s.best);
        }
        set_farther(i);
    }

    void set_farther(std::int64_t i) const {
        const T squared = square(i) - 2 * least(i, m.search[i].best);
        m.search[i].farther = squared > 0 ? job.reach * T(__builtin_sqrt(double(squared))) : T(0);
    }

    // Settle the best candidate so far, if it may be better, and look no farther than its distance says.
    void look_again(std::int64_t i) const {
        GroupSearch<T>& s = m.search[i];
        if (s.n_listed == 0) return;
        const int at = largest_listed(i);
        const T score = m.scores[i * kGroupListed + at];
        const std::int32_t label = take(i, at);
        if (score < s.threshold || score + job.gain[label] < least(i, s.best)) return;
        settle(i, plain_row(job.rows, row(i), m.line), label);
        raise(i, s.best);
        set_farther(i);
    }

    // The place on the list of a row of the candidate with the largest score.
    int largest_listed(std::int64_t i) const {
        const T* const scores = m.scores + i * kGroupListed;
        const std::int32_t* const labels = m.labels + i * kGroupListed;
        int at = m.search[i].n_listed - 1;
        for (int j = 0; j < m.search[i].n_listed; ++j)
            if (comes_before(scores[j], labels[j], scores[at], labels[at])) at = j;
        return at;
    }

    // Take a candidate off the list.
    std::int32_t take(std::int64_t i, int at) const {
        T* const scores = m.scores + i * kGroupListed;
        std::int32_t* const labels = m.labels + i * kGroupListed;
        const std::int32_t label = labels[at];
        scores[at] = scores[--m.search[i].n_listed];
        labels[at] = labels[m.search[i].n_listed];
        return label;
    }

    // Settle the candidates of a row: the one with the largest score first, then those that may still be better.
    __attribute__((noinline)) void settle_listed(std::int64_t i) const {
        GroupSearch<T>& s = m.search[i];
        const T* const x = plain_row(job.rows, row(i), m.line);
        for (bool first = true; s.n_listed > 0; first = false) {
            const int at = first ? largest_listed(i) : s.n_listed - 1;
            const T score = m.scores[i * kGroupListed + at];
            const std::int32_t label = take(i, at);
            if (score < s.threshold || score + job.gain[label] < least(i, s.best)) continue;
            settle(i, x, label);
            raise(i, s.best);
        }
    }

    // Remove the candidates of a row that the threshold has risen above.
    void prune(std::int64_t i) const {
        GroupSearch<T>& s = m.search[i];
        T* const scores = m.scores + i * kGroupListed;
        std::int32_t* const labels = m.labels + i * kGroupListed;
        std::int32_t kept = 0;
        for (std::int32_t j = 0; j < s.n_listed; ++j)
            if (scores[j] >= s.threshold) scores[kept] = scores[j], labels[kept++] = labels[j];
        s.n_listed = kept;
    }

    // Put a center on the list of a row. A full list is pruned, and settled if it is still more than half full.
    void add(std::int64_t i, T score, std::int32_t label) const {
        GroupSearch<T>& s = m.search[i];
        if (s.n_listed == kGroupListed) {
            prune(i);
            if (s.n_listed > kGroupListed / 2) settle_listed(i);
        }
        ++s.n_seen;
        m.scores[i * kGroupListed + s.n_listed] = score;
        m.labels[i * kGroupListed + s.n_listed++] = label;
    }

    // Have a row, and the centers of its candidates, brought into the cache.
    void fetch(std::int64_t i) const {
        constexpr int kLines = 4;  // after these the processor goes on by itself
        const char* const x = row_at(job.rows, row(i));
        for (int line = 0; line < kLines; ++line) __builtin_prefetch(x + 64 * line);
        for (int j = 0; j < m.search[i].n_listed; ++j) {
            const T* const center = job.centers + m.labels[i * kGroupListed + j] * job.rows.n_columns;
            for (int line = 0; line < kLines; ++line)
                __builtin_prefetch(reinterpret_cast<const char*>(center) + 64 * line);
        }
    }

    // Settle the last candidates of a row and store its results.
    void end(std::int64_t i) const {
        GroupSearch<T>& s = m.search[i];
        settle_listed(i);
        job.labels[place(i)] = s.label;
        job.best[place(i)] = s.best;
        job.second[place(i)] = s.second;
        m.n_listed += s.n_seen;
        m.n_settled += s.n_settled;
    }
};

}  // namespace quickmeans::QM_ISA
