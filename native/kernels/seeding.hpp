// The distances of k-means++: from rows to a few candidates, of which one becomes a center.
#pragma once

#include "intrinsics.hpp"
#include "panel.hpp"

namespace quickmeans::QM_ISA {

// Squared distances below this share of the squared norms are computed again from differences: what a difference of
// norms and products leaves of them is rounding.
constexpr float kCancelled = 1e-5f;

// A number for every candidate.
struct Trials {
    static constexpr int kVectors = kTrials > kWidth<float> ? kTrials / kWidth<float> : 1;
    Vec<float> lanes[kVectors];

    static Trials read(const float* p) {
        Trials trials{};
        __builtin_memcpy(trials.lanes, p, kTrials * sizeof(float));
        return trials;
    }
    void write(float* p) const { __builtin_memcpy(p, lanes, kTrials * sizeof(float)); }
};

// The squared distances of the rows `open` to the candidates, where they are below those in job.distances.
inline void lower_distances(const SeedJob& job, const std::int64_t* open, std::int64_t count, const Poll& poll) {
    constexpr int V = Trials::kVectors, R = kRowsAtOnce<V>;
    const std::int64_t n = job.panel.n_columns;
    const Trials candidate_norms = Trials::read(job.candidate_norms);
    PanelJob panel = job.panel;
    panel.index = open;
    Pacer pacer{poll};
    for (std::int64_t j = 0; j < count; j += R) {
        const RowGroup<R> group(panel, j, count - j);
        Scores<V> scores;
        multiply_panel<V>(panel.panels, panel.offset, group.rows, n, scores);
        pacer.did(n * R);
        for (int r = 0; r < group.count; ++r) {
            const float norm = job.norms[group.places[r]];
            Trials squares;
            unsigned cancelled = 0;
            for (int v = 0; v < V; ++v) {
                squares.lanes[v] = norm - 2 * scores[r][v];
                cancelled |= lane_bits<float>(squares.lanes[v] < kCancelled * (norm + candidate_norms.lanes[v]));
            }
            float* const nearest = job.distances + group.places[r] * kTrials;
            if (cancelled) {
                float values[kTrials];
                squares.write(values);
                for (std::int64_t t = 0; t < panel.n_centers; ++t)
                    if (values[t] < kCancelled * (norm + job.candidate_norms[t]))
                        values[t] = squared_distance(group.rows[r], panel.rows + job.candidates[t] * n, n);
                squares = Trials::read(values);
            }
            Trials lowest = Trials::read(nearest);
            for (int v = 0; v < V; ++v)
                lowest.lanes[v] = squares.lanes[v] < lowest.lanes[v] ? squares.lanes[v] : lowest.lanes[v];
            lowest.write(nearest);
        }
    }
}

// For the rows of one block and every candidate: the squared distance to the nearest of the centers and the candidate,
// in job.distances, and the weighted sum of these in job.sums. A row cannot come nearer if its center is at least twice
// as far from all candidates as from the row. Candidates that are missing are infinitely far away.
inline void seed_block(const SeedJob& job, std::int64_t block, const Poll& poll) {
    const std::int64_t first = block * kSeedBlock;
    const std::int64_t end = first + kSeedBlock < job.n_rows ? first + kSeedBlock : job.n_rows;
    std::int64_t open[kSeedBlock], count = 0;
    for (std::int64_t i = first; i < end; ++i) {
        const float closest = job.closest[i];
        for (int t = 0; t < kTrials; ++t) job.distances[i * kTrials + t] = closest;
        open[count] = i;
        count += !(job.gaps[job.owners[i]] >= 4 * closest);
    }
    lower_distances(job, open, count, poll);
    double sums[kTrials] = {};
    for (std::int64_t i = first; i < end; ++i)
        for (int t = 0; t < kTrials; ++t) sums[t] += job.weights[i] * double(job.distances[i * kTrials + t]);
    for (int t = 0; t < kTrials; ++t) job.sums[block * kTrials + t] = sums[t];
}

}  // namespace quickmeans::QM_ISA
