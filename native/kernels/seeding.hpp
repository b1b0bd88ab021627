// The distances of k-means++: from rows to a few candidates, of which one becomes a center.
#pragma once

#include "panel.hpp"

namespace quickmeans::QM_ISA {

// Squared distances below this share of the squared norms are computed again from differences: what a difference of
// norms and products leaves of them is rounding.
constexpr float kCancelled = 1e-5f;

// For the rows of one block and every candidate: the squared distance to the nearest of the centers and the candidate,
// in job.distances, and the weighted sum of these in job.sums. A row cannot come nearer if its center is at least twice
// as far from the candidate as from the row.
inline void seed_block(const SeedJob& job, std::int64_t block, const Poll& poll) {
    constexpr int W = kWidth<float>;
    const std::int64_t n = job.panel.n_columns, T = job.panel.n_centers, first = block * kSeedBlock;
    const std::int64_t end = first + kSeedBlock < job.n_rows ? first + kSeedBlock : job.n_rows;
    std::int64_t open[kSeedBlock], count = 0;
    for (std::int64_t i = first; i < end; ++i) {
        const float closest = job.closest[i], *gaps = job.gaps + job.owners[i] * T;
        bool nearer = false;
        for (std::int64_t t = 0; t < T; ++t) {
            job.distances[t * job.n_rows + i] = closest;
            nearer |= !(gaps[t] >= 4 * closest);
        }
        if (nearer) open[count++] = i;
    }
    PanelJob panel = job.panel;
    panel.index = open;
    Pacer pacer{poll};
    for (std::int64_t j = 0; j < count; j += kRowsAtOnce) {
        const RowGroup group(panel, j, count - j);
        Scores scores;
        multiply_panel(panel.panels, panel.offset, group.rows, n, scores);
        pacer.did(n * kRowsAtOnce);
        for (int r = 0; r < group.count; ++r)
            for (std::int64_t t = 0; t < T; ++t) {
                const std::int64_t i = group.places[r];
                float square = job.norms[i] - 2 * scores[r][t / W][t % W];
                if (square < kCancelled * (job.norms[i] + job.norms[job.candidates[t]]))
                    square = squared_distance(panel.rows + i * n, panel.rows + job.candidates[t] * n, n);
                float& nearest = job.distances[t * job.n_rows + i];
                nearest = square < nearest ? square : nearest;
            }
    }
    for (std::int64_t t = 0; t < T; ++t) {
        double sum = 0;
        for (std::int64_t i = first; i < end; ++i) sum += job.weights[i] * double(job.distances[t * job.n_rows + i]);
        job.sums[t * job.n_blocks + block] = sum;
    }
}

}  // namespace quickmeans::QM_ISA
