// What two means of a cluster's own rows would save.
//
// Rows are taken about their mean. Their leading direction, by power iteration, gives a first cut: of the thresholds
// along it, the one that saves most. Iterations of 2-means follow. If S is the sum of one side and its weight is A, the
// other side has the sum -S and the weight B, and the saving is |S|^2 (1/A + 1/B).
#pragma once

#include "exact.hpp"
#include "pacer.hpp"

namespace quickmeans::QM_ISA {

constexpr int kPowerSteps = 3;
constexpr int kTwoMeansSteps = 3;
constexpr int kCuts = 64;  // thresholds that are tried

// The rows of one cluster about their mean, and what is known of them.
struct Members {
    float* rows;       // count x n
    float* shares;     // weights
    float* places;     // along a direction
    float* sum;        // n: of the first side
    float* direction;  // n
    float* mean;       // n
    std::int64_t count;
    std::int64_t n;
    double weight;
};

inline void add_row(float* sum, const float* row, float factor, std::int64_t n) {
    for (std::int64_t j = 0; j < n; ++j) sum[j] += factor * row[j];
}

// Read at most job.most members, evenly spread, and take them about their mean. Returns the row that is farthest from
// it.
inline std::int64_t gather(const SplitJob& job, std::int64_t cluster, Members& m, Pacer& pacer) {
    const std::int64_t begin = job.starts[cluster], size = job.starts[cluster + 1] - begin, n = m.n;
    m.count = size < job.most ? size : job.most;
    m.weight = 0;
    for (std::int64_t j = 0; j < n; ++j) m.mean[j] = 0;
    for (std::int64_t i = 0; i < m.count; ++i) {
        const std::int64_t row = job.order[begin + i * size / m.count];
        m.shares[i] = float(job.weights[row]);
        m.weight += m.shares[i];
        const float *x = job.rows + row * n, *c = job.centers + cluster * n;
        for (std::int64_t j = 0; j < n; ++j) m.rows[i * n + j] = x[j] - c[j];
        add_row(m.mean, m.rows + i * n, m.shares[i], n);
        pacer.did(2 * n);
    }
    if (!(m.weight > 0)) return -1;
    for (std::int64_t j = 0; j < n; ++j) m.mean[j] = float(m.mean[j] / m.weight);
    std::int64_t farthest = -1;
    float largest = 0;
    for (std::int64_t i = 0; i < m.count; ++i) {
        add_row(m.rows + i * n, m.mean, -1, n);
        const float square = dot(m.rows + i * n, m.rows + i * n, n);
        if (m.shares[i] > 0 && square > largest) largest = square, farthest = i;
        pacer.did(2 * n);
    }
    return farthest;
}

// places = rows times the direction.
inline void project(const Members& m, const float* direction, Pacer& pacer) {
    for (std::int64_t i = 0; i < m.count; ++i) {
        m.places[i] = dot(m.rows + i * m.n, direction, m.n);
        pacer.did(m.n);
    }
}

// The leading direction of the rows, from a first guess.
inline void power_iteration(const Members& m, std::int64_t guess, Pacer& pacer) {
    const std::int64_t n = m.n;
    for (std::int64_t j = 0; j < n; ++j) m.direction[j] = m.rows[guess * n + j];
    for (int step = 0; step <= kPowerSteps; ++step) {
        const float square = dot(m.direction, m.direction, n);
        const float scale = square > 0 ? 1 / __builtin_sqrtf(square) : 0;
        for (std::int64_t j = 0; j < n; ++j) m.direction[j] *= scale;
        project(m, m.direction, pacer);
        if (step == kPowerSteps) return;
        for (std::int64_t j = 0; j < n; ++j) m.direction[j] = 0;
        for (std::int64_t i = 0; i < m.count; ++i) {
            add_row(m.direction, m.rows + i * n, m.shares[i] * m.places[i], n);
            pacer.did(n);
        }
    }
}

// The threshold among kCuts that saves most along the direction.
inline float best_cut(const Members& m) {
    float low = m.places[0], high = m.places[0];
    for (std::int64_t i = 0; i < m.count; ++i) {
        low = m.places[i] < low ? m.places[i] : low;
        high = m.places[i] > high ? m.places[i] : high;
    }
    double weights[kCuts] = {}, sums[kCuts] = {};
    const float scale = high > low ? float(kCuts) / (high - low) : 0;
    for (std::int64_t i = 0; i < m.count; ++i) {
        int cut = int((m.places[i] - low) * scale);
        cut = cut < 0 ? 0 : cut >= kCuts ? kCuts - 1 : cut;
        weights[cut] += m.shares[i];
        sums[cut] += double(m.shares[i]) * m.places[i];
    }
    double A = 0, S = 0, most = -1;
    int best = 0;
    for (int cut = 0; cut + 1 < kCuts; ++cut) {
        A += weights[cut], S += sums[cut];
        const double B = m.weight - A, saving = A > 0 && B > 0 ? S * S * (1 / A + 1 / B) : -1;
        if (saving > most) most = saving, best = cut;
    }
    return scale > 0 ? low + float(best + 1) / scale : low;
}

// The weights of the rows above a threshold and of the others.
struct Sides {
    double above = 0, below = 0;
    bool both() const { return above > 0 && below > 0; }
};

// The sum of the rows above the threshold in m.sum, and the weights of both sides.
inline Sides sum_above(const Members& m, float threshold, Pacer& pacer) {
    for (std::int64_t j = 0; j < m.n; ++j) m.sum[j] = 0;
    Sides sides;
    for (std::int64_t i = 0; i < m.count; ++i) {
        const bool above = m.places[i] > threshold;
        (above ? sides.above : sides.below) += m.shares[i];
        if (above) add_row(m.sum, m.rows + i * m.n, m.shares[i], m.n);
        pacer.did(m.n);
    }
    return sides;
}

// Split one cluster: OUT its gain and the two means. `scratch` has room for job.most + 3 rows and 2 job.most numbers.
inline void split(const SplitJob& job, std::int64_t cluster, float* scratch, const Poll& poll) {
    const std::int64_t n = job.n_columns, room = job.most * n;
    Members m{scratch,
              scratch + room + 3 * n,
              scratch + room + 3 * n + job.most,
              scratch + room,
              scratch + room + n,
              scratch + room + 2 * n,
              0,
              n,
              0};
    Pacer pacer{poll};
    float *one = job.pairs + 2 * cluster * n, *two = one + n;
    const float* const center = job.centers + cluster * n;
    job.gains[cluster] = 0;
    for (std::int64_t j = 0; j < n; ++j) one[j] = two[j] = center[j];
    if (job.starts[cluster + 1] - job.starts[cluster] < 2) return;
    const std::int64_t guess = gather(job, cluster, m, pacer);
    if (guess < 0) return;
    power_iteration(m, guess, pacer);
    Sides sides = sum_above(m, best_cut(m), pacer);
    for (int step = 0; step < kTwoMeansSteps && sides.both(); ++step) {
        const double square = double(dot(m.sum, m.sum, n));
        project(m, m.sum, pacer);
        sides = sum_above(m, float(square / 2 * (1 / sides.above - 1 / sides.below)), pacer);
    }
    if (!sides.both()) return;
    for (std::int64_t j = 0; j < n; ++j) {
        one[j] = center[j] + m.mean[j] + float(m.sum[j] / sides.above);
        two[j] = center[j] + m.mean[j] - float(m.sum[j] / sides.below);
    }
    const double saving = double(dot(m.sum, m.sum, n)) * (1 / sides.above + 1 / sides.below);
    job.gains[cluster] = saving * job.cluster_weights[cluster] / m.weight;
}

}  // namespace quickmeans::QM_ISA
