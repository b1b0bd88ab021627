// What two means of a cluster's own rows would save.
//
// Rows are taken about their mean. Their leading direction, by power iteration, gives a first cut: of the thresholds
// along it, the one that saves most. Iterations of 2-means follow. If S is the sum of one side and its weight is A, the
// other side has the sum -S and the weight B, and the saving is |S|^2 (1/A + 1/B). The rows are transposed: vectors run
// over rows, so short rows are as fast as long ones.
#pragma once

#include "exact.hpp"
#include "pacer.hpp"
#include "tile.hpp"

namespace quickmeans::QM_ISA {

constexpr int kPowerSteps = 3;
constexpr int kTwoMeansSteps = 3;
constexpr int kCuts = 64;  // thresholds that are tried

// The rows of one cluster about their mean, and what is known of them. Lanes past the last row have no weight.
struct Members {
    float* columns;    // n x lanes
    float* shares;     // lanes: weights
    float* places;     // lanes: along a direction
    float* factors;    // lanes
    float* staging;    // kWidth<float> x kStagingColumns
    float* sum;        // n: of the first side
    float* direction;  // n
    float* mean;       // n
    std::int64_t n, lanes, count;
    double weight;

    Members(float* scratch, std::int64_t n_columns, std::int64_t n_members)
        : n(n_columns), lanes((n_members + kWidth<float> - 1) / kWidth<float> * kWidth<float>), count(n_members) {
        columns = scratch;
        shares = columns + n * lanes;
        places = shares + lanes;
        factors = places + lanes;
        staging = factors + lanes;
        sum = staging + kWidth<float> * kStagingColumns;
        direction = sum + n;
        mean = direction + n;
    }
};

// The inner product of two lists of a whole number of vectors.
inline float lane_product(const float* x, const float* y, std::int64_t lanes) {
    constexpr int W = kWidth<float>, C = 4;
    Vec<float> sum[C] = {};
    std::int64_t i = 0;
    for (; i + C * W <= lanes; i += C * W)
        for (int c = 0; c < C; ++c) sum[c] += load(x + i + c * W) * load(y + i + c * W);
    for (; i < lanes; i += W) sum[0] += load(x + i) * load(y + i);
    const Vec<float> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    float total = 0;
    for (int j = 0; j < W; ++j) total += all[j];
    return total;
}

// The sum of the rows times factors.
inline void sum_rows(const Members& m, const float* factors, float* sum, Pacer& pacer) {
    for (std::int64_t j = 0; j < m.n; ++j) {
        sum[j] = lane_product(m.columns + j * m.lanes, factors, m.lanes);
        pacer.did(m.lanes);
    }
}

// The places of V vectors of rows, from lane i on.
template <int V>
inline void project_lanes(const Members& m, const float* direction, std::int64_t i) {
    constexpr int W = kWidth<float>;
    Vec<float> place[V] = {};
    for (std::int64_t j = 0; j < m.n; ++j)
        for (int v = 0; v < V; ++v) place[v] += direction[j] * load(m.columns + j * m.lanes + i + v * W);
    for (int v = 0; v < V; ++v) store(m.places + i + v * W, place[v]);
}

// places = rows times the direction.
inline void project(const Members& m, const float* direction, Pacer& pacer) {
    constexpr int W = kWidth<float>, V = 8;
    std::int64_t i = 0;
    for (; i + V * W <= m.lanes; i += V * W, pacer.did(m.n * V * W)) project_lanes<V>(m, direction, i);
    for (; i < m.lanes; i += W, pacer.did(m.n * W)) project_lanes<1>(m, direction, i);
}

// Read at most job.most members, evenly spread, and take them about their mean. Returns the row that is farthest from
// it.
inline std::int64_t gather(const SplitJob& job, std::int64_t cluster, Members& m, std::int64_t* index, Pacer& pacer) {
    const std::int64_t begin = job.starts[cluster], size = job.starts[cluster + 1] - begin;
    m.weight = 0;
    for (std::int64_t i = 0; i < m.count; ++i) {
        index[i] = job.order[begin + i * size / m.count];
        m.shares[i] = float(job.weights[index[i]]);
        m.weight += m.shares[i];
    }
    for (std::int64_t i = m.count; i < m.lanes; ++i) m.shares[i] = 0;
    RowsView rows = job.rows;
    rows.index = index;
    load_by_row(rows, 0, m.count, m.columns, int(m.lanes), m.staging, __builtin_inff());
    if (!(m.weight > 0)) return -1;
    constexpr int W = kWidth<float>;
    for (std::int64_t i = 0; i < m.lanes; i += W) store(m.factors + i, Vec<float>{});
    for (std::int64_t j = 0; j < m.n; ++j) {
        float* const column = m.columns + j * m.lanes;
        const float center = job.centers[cluster * m.n + j];
        for (std::int64_t i = 0; i < m.lanes; i += W) store(column + i, load(column + i) - center);
        m.mean[j] = float(lane_product(column, m.shares, m.lanes) / m.weight);
        for (std::int64_t i = 0; i < m.lanes; i += W) {
            const Vec<float> x = load(column + i) - m.mean[j];
            store(column + i, x);
            store(m.factors + i, load(m.factors + i) + x * x);
        }
        pacer.did(4 * m.lanes);
    }
    std::int64_t farthest = -1;
    float largest = 0;
    for (std::int64_t i = 0; i < m.count; ++i)
        if (m.factors[i] > largest && m.shares[i] > 0) largest = m.factors[i], farthest = i;
    return farthest;
}

// The leading direction of the rows, from a first guess.
inline void power_iteration(const Members& m, std::int64_t guess, Pacer& pacer) {
    const std::int64_t n = m.n;
    for (std::int64_t j = 0; j < n; ++j) m.direction[j] = m.columns[j * m.lanes + guess];
    for (int step = 0; step <= kPowerSteps; ++step) {
        const float square = dot(m.direction, m.direction, n);
        const float scale = square > 0 ? 1 / __builtin_sqrtf(square) : 0;
        for (std::int64_t j = 0; j < n; ++j) m.direction[j] *= scale;
        project(m, m.direction, pacer);
        if (step == kPowerSteps) return;
        for (std::int64_t i = 0; i < m.lanes; ++i) m.factors[i] = m.shares[i] * m.places[i];
        sum_rows(m, m.factors, m.direction, pacer);
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
    Sides sides;
    for (std::int64_t i = 0; i < m.lanes; ++i) {
        const float above = m.places[i] > threshold ? m.shares[i] : 0;
        m.factors[i] = above;
        sides.above += above;
        sides.below += m.shares[i] - above;
    }
    sum_rows(m, m.factors, m.sum, pacer);
    return sides;
}

// Split one cluster: OUT its gain and, in `pair`, the two means. `scratch` has as many numbers as split_scratch in
// search.cpp says, `index` job.most.
inline void split(const SplitJob& job, std::int64_t cluster, float* pair, float* scratch, std::int64_t* index,
                  const Poll& poll) {
    const std::int64_t n = job.rows.n_columns, size = job.starts[cluster + 1] - job.starts[cluster];
    Pacer pacer{poll};
    float *const one = pair, *const two = pair + n;
    const float* const center = job.centers + cluster * n;
    job.gains[cluster] = 0;
    for (std::int64_t j = 0; j < n; ++j) one[j] = two[j] = center[j];
    if (size < 2) return;
    Members m(scratch, n, size < job.most ? size : job.most);
    const std::int64_t guess = gather(job, cluster, m, index, pacer);
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
