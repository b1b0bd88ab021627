// k-means++: every new center is drawn with a probability in proportion to weight times squared distance from those
// before it.
#pragma once

#include "pacer.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

// The squared distances of the points [first, first + count) from point `center`, or `closest` where that is less.
inline void lower_distances(const SeedJob& job, std::int64_t center, std::int64_t first, std::int64_t count,
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

// The distances of all points to the nearest center, after one more center: OUT `out`, their weighted sums by block in
// `sums`, and the weighted sum of all.
inline double add_center(const SeedJob& job, std::int64_t center, const float* closest, float* out, double* sums,
                         Pacer& pacer) {
    double total = 0;
    for (std::int64_t first = 0, b = 0; first < job.n_points; first += kSeedBlock, ++b) {
        const std::int64_t left = job.n_points - first, count = left < kSeedBlock ? left : kSeedBlock;
        lower_distances(job, center, first, count, closest + first, out + first);
        double sum[8] = {};
        for (std::int64_t i = 0; i < count; ++i) sum[i % 8] += job.weights[first + i] * double(out[first + i]);
        sums[b] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
        total += sums[b];
        pacer.did(count * (job.n_columns + 1));
    }
    return total;
}

// The point at which the running sum of weight times distance passes `goal`; not one at distance zero if there is
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

template <class T>
inline void exchange(T*& a, T*& b) {
    T* const c = a;
    a = b, b = c;
}

// Each center is the best of `n_trials` draws. Returns the number of centers; fewer than n_centers if no other point
// with weight is away from these.
inline std::int64_t seed(const SeedJob& job, const Poll& poll) {
    const std::int64_t n = job.n_points, n_blocks = (n + kSeedBlock - 1) / kSeedBlock;
    float *closest = job.distances, *trial = closest + n, *best = trial + n;
    double *sums = job.sums, *trial_sums = sums + n_blocks, *best_sums = trial_sums + n_blocks;
    Pacer pacer{poll};
    for (std::int64_t i = 0; i < n; ++i) closest[i] = __builtin_inff();
    job.chosen[0] = job.first;
    double total = add_center(job, job.first, closest, closest, sums, pacer);
    for (std::int64_t k = 1; k < job.n_centers; ++k) {
        if (!(total > 0)) return k;
        double lowest = __builtin_inf();
        for (std::int64_t t = 0; t < job.n_trials; ++t) {
            const std::int64_t i = draw(job, closest, sums, job.uniforms[k * job.n_trials + t] * total);
            const double sum = add_center(job, i, closest, trial, trial_sums, pacer);
            if (t > 0 && !(sum < lowest)) continue;
            lowest = sum;
            job.chosen[k] = i;
            exchange(trial, best);
            exchange(trial_sums, best_sums);
        }
        exchange(closest, best);
        exchange(sums, best_sums);
        total = lowest;
    }
    return job.n_centers;
}

}  // namespace quickmeans::QM_ISA
