// k-means++: every new centre is drawn with a chance in proportion to weight times squared distance from those so far.
#pragma once

#include "types.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

// The squared distances of the points [first, first + count) from point `center`, no further than `closest`.
inline void meet_center(const SeedJob& job, std::int64_t center, std::int64_t first, std::int64_t count,
                        const float* closest, float* out) {
    const std::int64_t n = job.n_points;
    for (std::int64_t i = 0; i < count; ++i) out[i] = job.residuals[first + i] + job.residuals[center];
    for (std::int64_t j = 0; j < job.n_columns; ++j) {
        const float* x = job.points + j * n + first;
        const float c = job.points[j * n + center];
        for (std::int64_t i = 0; i < count; ++i) {
            const float d = x[i] - c;
            out[i] += d * d;
        }
    }
    for (std::int64_t i = 0; i < count; ++i) out[i] = out[i] < closest[i] ? out[i] : closest[i];
    if (center >= first && center < first + count) out[center - first] = 0;
}

constexpr std::int64_t kSeedBlock = 1024;

// Distances after one more centre, and their weighted sum; `out` and the block sums are what is updated.
inline double add_center(const SeedJob& job, std::int64_t center, const float* closest, float* out, double* sums) {
    double total = 0;
    for (std::int64_t first = 0, b = 0; first < job.n_points; first += kSeedBlock, ++b) {
        const std::int64_t left = job.n_points - first, count = left < kSeedBlock ? left : kSeedBlock;
        meet_center(job, center, first, count, closest + first, out + first);
        double sum[8] = {};
        for (std::int64_t i = 0; i < count; ++i) sum[i % 8] += job.weights[first + i] * double(out[first + i]);
        sums[b] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
        total += sums[b];
    }
    return total;
}

// The point at which the running sum of weight times distance passes `goal`; never one at distance zero if there is
// another.
inline std::int64_t draw(const SeedJob& job, const float* closest, const double* sums, double goal) {
    std::int64_t first = 0, b = 0, last = 0;
    for (; first + kSeedBlock < job.n_points && goal >= sums[b]; first += kSeedBlock) goal -= sums[b++];
    for (std::int64_t i = first; i < job.n_points; ++i) {
        const double mass = job.weights[i] * double(closest[i]);
        if (mass > 0) last = i;
        goal -= mass;
        if (goal < 0 && mass > 0) return i;
    }
    for (std::int64_t i = 0; i < first; ++i)
        if (job.weights[i] * double(closest[i]) > 0 && job.weights[last] * double(closest[last]) <= 0) last = i;
    return last;
}

// Each centre is the best of `n_trials` draws. Returns how many could be told apart.
inline std::int64_t seed(const SeedJob& job, float* closest, float* trial, float* best, double* scratch) {
    const std::int64_t n_blocks = (job.n_points + kSeedBlock - 1) / kSeedBlock;
    double *sums = scratch, *trial_sums = scratch + n_blocks, *best_sums = scratch + 2 * n_blocks;
    for (std::int64_t i = 0; i < job.n_points; ++i) closest[i] = __builtin_inff();
    job.chosen[0] = job.first;
    double total = add_center(job, job.first, closest, closest, sums);
    for (std::int64_t k = 1; k < job.n_centers; ++k) {
        if (!(total > 0)) return k;
        double lowest = __builtin_inf();
        for (std::int64_t t = 0; t < job.n_trials; ++t) {
            const std::int64_t i = draw(job, closest, sums, job.uniforms[k * job.n_trials + t] * total);
            const double sum = add_center(job, i, closest, trial, trial_sums);
            if (t > 0 && !(sum < lowest)) continue;
            lowest = sum;
            job.chosen[k] = i;
            float* f = trial;
            trial = best, best = f;
            double* d = trial_sums;
            trial_sums = best_sums, best_sums = d;
        }
        float* f = closest;
        closest = best, best = f;
        double* d = sums;
        sums = best_sums, best_sums = d;
        total = lowest;
    }
    return job.n_centers;
}

}  // namespace quickmeans::QM_ISA
