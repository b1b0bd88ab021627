// Lloyd's iteration with bounds: see search.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "grouping.hpp"
#include "parallel.hpp"
#include "search.hpp"

namespace quickmeans {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kRowsPerChunk = 512;
// With more centers, a row in doubt is first compared with its own: that takes as long as comparing it with a few
// dozen.
constexpr std::int64_t kTighten = 32;
// An objective that is a smaller share of the scatter is nothing but rounding in float64.
constexpr double kCancelled = 1e-13;
// Other centers count as near if they are within so many times the distance of a cluster's farthest row. Those beyond
// are then at least twice as far from every row as its own center.
constexpr float kNear = 3;

}  // namespace

Search::Search(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, bool spherical,
               int n_threads, const InstructionSet& set, const Poll& poll)
    : rows_(rows),
      n_(n),
      n_columns_(n_columns),
      weights_(weights),
      spherical_(spherical),
      n_threads_(n_threads),
      set_(set),
      rounding_(rounding_of(n_columns)),
      norms_(std::size_t(n)),
      order_(std::size_t(n)),
      best_(std::size_t(n)),
      next_(std::size_t(n)),
      first_(std::size_t(n)),
      second_(std::size_t(n)) {
    std::vector<double> squares(static_cast<std::size_t>(n));
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const Range range{c * kRowsPerChunk, std::min(kRowsPerChunk, n_ - c * kRowsPerChunk)};
        set_.routines.square_rows(rows_, n_columns_, range, squares.data(), own_poll);
        return true;
    };
    for_each_chunk((n + kRowsPerChunk - 1) / kRowsPerChunk, threads_for(double(n * n_columns)), chunk, poll);
    for (std::int64_t i = 0; i < n; ++i) {
        norms_[i] = float(squares[i]);
        scatter_ += weights[i] * squares[i];
    }
}

// Scores and squares in float32 are wrong by at most so large a share of the squares in them: twice the root of the
// number of roundings, and some.
float Search::rounding_of(std::int64_t n_columns) { return 6e-8f * (16 + 2 * std::sqrt(float(n_columns))); }

// Multiply-adds that are worth a thread: starting one takes 20 to 50 microseconds, at 10 to 30 of them a nanosecond.
constexpr double kWorkPerThread = 1e6;

int Search::threads_for(double multiply_adds) const {
    return std::max(1, std::min(n_threads_, int(multiply_adds / kWorkPerThread)));
}

// With more centers, the distances between them are not kept: 16 MB.
constexpr std::int64_t kMostMeasured = 2048;

bool Search::few_centers() const { return now_.n_centers <= kMostMeasured; }

RowsView Search::view(const float* data, std::int64_t n, const std::int64_t* index) const {
    const auto size = std::int64_t(sizeof(float));
    return {reinterpret_cast<const char*>(data), n, n_columns_, n_columns_ * size, size, Scalar::f32, index};
}

void Search::resize(std::int64_t n_centers) {
    const auto K = std::size_t(n_centers), KD = std::size_t(n_centers * n_columns_);
    now_.n_centers = n_centers;
    now_.centers.resize(KD);
    now_.sums.resize(KD);
    now_.weights.resize(K);
    now_.squares.resize(K);
    now_.changed.resize(K, 1);
    now_.stale.resize(K, 1);
    now_.gains.resize(K);
    now_.pairs.resize(2 * KD);
}

void Search::set_center(std::int64_t k, const float* values) {
    float* const center = now_.centers.data() + k * n_columns_;
    double square = 0;
    for (std::int64_t d = 0; d < n_columns_; ++d) square += double(values[d]) * values[d];
    if (spherical_ && !(square > 0)) return;  // without a direction it stays where it is
    const double scale = spherical_ ? 1 / std::sqrt(square) : 1;
    for (std::int64_t d = 0; d < n_columns_; ++d) center[d] = float(scale * values[d]);
    now_.squares[k] = float(scale * scale * square);
}

void Search::place(const float* centers, std::int64_t n_centers, const Poll& poll) {
    now_ = Clusters();
    resize(n_centers);
    for (std::int64_t k = 0; k < n_centers; ++k) set_center(k, centers + k * n_columns_);
    now_.labels.assign(std::size_t(n_), -1);
    now_.seconds.assign(std::size_t(n_), -1);
    now_.summed.assign(std::size_t(n_), -1);
    now_.upper.assign(std::size_t(n_), kInfinity);
    now_.lower.assign(std::size_t(n_), 0);
    measure_all(poll);
}

// ---- Lloyd's iteration ----------------------------------------------------------------------------------------------

// The centers in panels, for all rows of an array that the index names.
NearestJob Search::packed_centers(const float* rows, const std::int64_t* index) {
    const std::int64_t K = now_.n_centers, panel = set_.panel, padded = (K + panel - 1) / panel * panel;
    panels_.assign(std::size_t(padded * n_columns_), 0);
    offset_.assign(std::size_t(padded), -kInfinity);
    for (std::int64_t k = 0; k < K; ++k) {
        offset_[k] = -now_.squares[k] / 2;
        const float* const center = now_.centers.data() + k * n_columns_;
        float* const to = panels_.data() + k / panel * panel * n_columns_ + k % panel;
        for (std::int64_t d = 0; d < n_columns_; ++d) to[d * panel] = center[d];
    }
    return {.rows = rows,
            .n_columns = n_columns_,
            .index = index,
            .panels = panels_.data(),
            .offset = offset_.data(),
            .n_centers = K,
            .labels = now_.labels.data(),
            .seconds = now_.seconds.data(),
            .best = best_.data(),
            .next = next_.data()};
}

// Give every row in doubt its nearest centers; returns how many labels have changed.
std::int64_t Search::assign(const Poll& poll) {
    const NearestJob job = packed_centers(rows_, nullptr);
    const std::int64_t n_chunks = (n_ + kRowsPerChunk - 1) / kRowsPerChunk;
    const float largest = *std::max_element(now_.squares.begin(), now_.squares.end());
    std::vector<std::int64_t> n_doubtful(static_cast<std::size_t>(n_chunks));
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const std::int64_t first = c * kRowsPerChunk, end = std::min(n_, first + kRowsPerChunk);
        std::int64_t doubtful[kRowsPerChunk], count = 0;
        for (std::int64_t i = first; i < end; ++i) {
            float& upper = now_.upper[i];
            const float lower = now_.lower[i];
            if (upper < lower) continue;
            if (lower > 0 && now_.n_centers > kTighten) {
                float square;
                set_.routines.own_distances(rows_ + i * n_columns_, now_.centers.data(), n_columns_,
                                            now_.labels.data() + i, {0, 1}, &square, own_poll);
                upper = std::sqrt(square);
                if (upper < lower) continue;
            }
            doubtful[count++] = i;
        }
        NearestJob part = job;
        part.index = doubtful;
        set_.routines.nearest(part, {0, count}, own_poll);
        for (std::int64_t j = 0; j < count; ++j) {
            const auto i = std::size_t(doubtful[j]);
            const float slack = rounding_ * (norms_[i] + largest);
            now_.upper[i] = std::sqrt(std::max(norms_[i] - 2 * best_[i] + slack, 0.f));
            now_.lower[i] = std::sqrt(std::max(norms_[i] - 2 * next_[i] - slack, 0.f));
        }
        n_doubtful[c] = count;
        return true;
    };
    for_each_chunk(n_chunks, threads_for(double(n_) * double(now_.n_centers * n_columns_) / 16), chunk, poll);
    const std::int64_t all = std::accumulate(n_doubtful.begin(), n_doubtful.end(), std::int64_t(0));
    work_ += double(all) * double(now_.n_centers * n_columns_);
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
        const std::int32_t was = now_.summed[i], is = now_.labels[i];
        if (was == is) continue;
        ++changed;
        if (was >= 0) now_.changed[was] = 1;
        now_.changed[is] = 1;
    }
    return changed;
}

void Search::group(const Poll& poll) {
    starts_.resize(std::size_t(now_.n_centers + 1));
    group_by_label(now_.labels.data(), n_, now_.n_centers, order_.data(), starts_.data(), poll);
}

// Bring the sums of the clusters to the labels: every row that has changed its label is taken from one and added to the
// other.
void Search::exchange(const Poll& poll) {
    const std::int64_t K = now_.n_centers;
    std::vector<std::int32_t> clusters;
    std::vector<std::int64_t> rows;
    std::vector<double> factors;
    for (std::int64_t i = 0; i < n_; ++i) {
        const std::int32_t was = now_.summed[i], is = now_.labels[i];
        if (was == is) continue;
        for (const bool leaves : {true, false}) {
            const std::int32_t k = leaves ? was : is;
            if (k < 0) continue;
            clusters.push_back(k);
            rows.push_back(i);
            factors.push_back(leaves ? -weights_[i] : weights_[i]);
        }
    }
    const std::int64_t m = std::int64_t(rows.size());
    std::vector<std::int64_t> order(rows.size()), starts(std::size_t(K + 1)), members(rows.size());
    std::vector<double> member_factors(rows.size());
    group_by_label(clusters.data(), m, K, order.data(), starts.data(), poll);
    for (std::size_t j = 0; j < rows.size(); ++j) {
        members[j] = rows[order[j]];
        member_factors[j] = factors[order[j]];
    }
    const SumJob job{.rows = view(rows_, n_, nullptr),
                     .members = members.data(),
                     .starts = starts.data(),
                     .weights = member_factors.data(),
                     .sums = now_.sums.data()};
    const auto chunk = [&](std::int64_t k, int, const Poll& own_poll) {
        set_.routines.add_members(job, k, {0, n_columns_}, own_poll);
        return true;
    };
    for_each_chunk(K, threads_for(double(m * n_columns_)), chunk, poll);
    work_ += double(m * n_columns_);
    now_.summed = now_.labels;
    std::fill(now_.weights.begin(), now_.weights.end(), 0.0);
    for (std::int64_t i = 0; i < n_; ++i) now_.weights[now_.labels[i]] += weights_[i];
}

// Move every center to the mean of its rows; returns the sum of the squared shifts.
double Search::update(const Poll& poll) {
    const std::int64_t K = now_.n_centers, D = n_columns_;
    exchange(poll);
    std::vector<std::int64_t> moved;
    std::vector<float> shift(std::size_t(K), 0), mean(n_columns_), old(n_columns_);
    double shifts = 0, before = 0, explained = 0;
    for (std::int64_t k = 0; k < K; ++k) {
        const double weight = now_.weights[k], *const sum = now_.sums.data() + k * D;
        const float* const center = now_.centers.data() + k * D;
        if (!(weight > 0)) now_.stale[k] |= now_.changed[k];
        if (!(weight > 0)) continue;  // an empty cluster keeps its center, which costs nothing to remove
        double square = 0, along = 0, way = 0;
        for (std::int64_t d = 0; d < D; ++d) square += sum[d] * sum[d], along += sum[d] * center[d];
        before += 2 * along - weight * now_.squares[k];
        explained += spherical_ ? 2 * std::sqrt(square) - weight : square / weight;
        now_.stale[k] |= now_.changed[k];
        if (!now_.changed[k] || (spherical_ && !(square > 0))) continue;  // rows that cancel have no direction
        std::copy_n(center, D, old.begin());
        for (std::int64_t d = 0; d < D; ++d) mean[d] = float(sum[d] / weight);
        set_center(k, mean.data());
        for (std::int64_t d = 0; d < D; ++d) way += double(center[d] - old[d]) * (center[d] - old[d]);
        shift[k] = float(std::sqrt(way));
        shifts += way;
        moved.push_back(k);
    }
    std::fill(now_.changed.begin(), now_.changed.end(), 0);
    const double objective = scatter_ - explained;
    now_.objective = objective > kCancelled * scatter_ ? objective : 0;
    now_.assigned = std::max(scatter_ - before, now_.objective);  // centers are rounded, means are not
    measure(moved, poll);
    move_bounds(shift, poll);
    return shifts;
}

void Search::measure_all(const Poll& poll) {
    std::vector<std::int64_t> all(std::size_t(now_.n_centers));
    std::iota(all.begin(), all.end(), 0);
    measure(all, poll);
}

// The distances between the moved centers and all others.
void Search::measure(const std::vector<std::int64_t>& moved, const Poll& poll) {
    const std::int64_t K = now_.n_centers;
    if (!few_centers() || moved.empty()) return;
    now_.apart.resize(std::size_t(K * K));
    const NearestJob job = packed_centers(now_.centers.data(), moved.data());
    std::vector<float> scores(moved.size() * std::size_t(K));
    constexpr std::int64_t kCentersPerChunk = 48;
    const std::int64_t n_moved = std::int64_t(moved.size()),
                       n_chunks = (n_moved + kCentersPerChunk - 1) / kCentersPerChunk;
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const std::int64_t first = c * kCentersPerChunk;
        set_.routines.all_scores(job, {first, std::min(kCentersPerChunk, n_moved - first)}, scores.data(), own_poll);
        return true;
    };
    const double work = double(n_moved) * double(K * n_columns_);
    for_each_chunk(n_chunks, threads_for(work / 8), chunk, poll);
    work_ += work;
    for (std::int64_t i = 0; i < n_moved; ++i)
        for (std::int64_t k = 0; k < K; ++k) {
            const std::int64_t j = moved[i];
            const float size = now_.squares[j] + now_.squares[k];
            const float square = now_.squares[j] - 2 * scores[i * K + k] - rounding_ * size;
            now_.apart[j * K + k] = now_.apart[k * K + j] = std::sqrt(std::max(square, 0.f));
        }
}

// Adjust the bounds to centers that have moved so far. For the rows of center k only near centers matter: all others
// are at least `reach` away from k, so at least reach - upper away from the row.
void Search::move_bounds(const std::vector<float>& shift, const Poll& poll) {
    const std::int64_t K = now_.n_centers;
    std::vector<float> largest(std::size_t(K), 0), near(std::size_t(K), 0), reach(std::size_t(K), kInfinity),
        closest(std::size_t(K), 0);
    for (std::int64_t i = 0; i < n_; ++i) {
        const std::int32_t k = now_.labels[i];
        now_.upper[i] += shift[k];
        largest[k] = std::max(largest[k], now_.upper[i]);
    }
    if (few_centers()) {
        for (std::int64_t k = 0; k < K; ++k) {
            const float limit = kNear * largest[k];
            const float* const apart = now_.apart.data() + k * K;
            float moves = 0, beyond = kInfinity, least = kInfinity;
            for (std::int64_t j = 0; j < K; ++j) {
                if (j == k) continue;
                least = std::min(least, apart[j]);
                if (apart[j] < limit)
                    moves = std::max(moves, shift[j]);
                else
                    beyond = std::min(beyond, apart[j]);
            }
            near[k] = moves, reach[k] = beyond, closest[k] = least;
        }
    } else {
        std::fill(near.begin(), near.end(), *std::max_element(shift.begin(), shift.end()));
    }
    for (std::int64_t i = 0; i < n_; ++i) {
        const std::int32_t k = now_.labels[i];
        const float upper = now_.upper[i], lower = std::min(now_.lower[i] - near[k], reach[k] - upper);
        now_.lower[i] = std::max(lower, closest[k] - upper);
    }
    poll.call(poll.context);
}

void Search::means(double* out) const {
    for (std::int64_t k = 0; k < now_.n_centers; ++k) {
        const float* const center = now_.centers.data() + k * n_columns_;
        const double *const sum = now_.sums.data() + k * n_columns_, weight = now_.weights[k];
        const double length = std::sqrt(std::inner_product(sum, sum + n_columns_, sum, 0.0));
        const double divisor = spherical_ ? length : weight;
        for (std::int64_t d = 0; d < n_columns_; ++d)
            out[k * n_columns_ + d] = weight > 0 && divisor > 0 ? sum[d] / divisor : center[d];
    }
}

std::int64_t Search::iterate(std::int64_t most, double tol, const Poll& poll) {
    if (!now_.n_centers) throw std::invalid_argument("place centers first");
    now_.converged = false;
    for (std::int64_t done = 0; done < most;) {
        const std::int64_t changed = assign(poll);
        ++done;
        const bool still =
            changed == 0 && std::none_of(now_.changed.begin(), now_.changed.end(), [](char c) { return c; });
        if (still) now_.assigned = now_.objective;
        if (still || update(poll) <= tol) {
            now_.converged = true;
            return done;
        }
    }
    return most;
}

}  // namespace quickmeans
