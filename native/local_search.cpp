#include "local_search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "dispatch.hpp"
#include "float_rows.hpp"
#include "grouping.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kChunkRows = 512;     // rows whose squares a thread adds up at a time
constexpr std::int64_t kChunkClusters = 16;  // clusters whose rows it compares at a time
// Neighbours are found again when the centers have moved this share of the squared distance of their nearest ones.
constexpr double kDrift = 0.02;
// Groups whose centers a row without a label is compared with, and a row in doubt: of 256 groups of 64 centers, 16 hold
// the nearest center of 99.6 rows in 100.
constexpr std::int64_t kFirstGroups = 4, kManyGroups = 16;
// One row in so many is in doubt: of what labels that miss a nearer center cost, the farthest tenth of the rows has 74
// (K = 4096) to 92 parts in 100 (K = 16384, word vectors).
constexpr std::int64_t kDoubtful = 12;
constexpr std::uint8_t kRest = 4;
// An objective that is a smaller share of the scatter is nothing but rounding in float64.
constexpr double kCancelled = 1e-13;

std::int64_t divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

LocalSearch::LocalSearch(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights,
                         bool spherical, int n_threads, const InstructionSet& set, const Poll& poll)
    : rows_(rows),
      n_(n),
      n_columns_(n_columns),
      weights_(weights),
      spherical_(spherical),
      n_threads_(n_threads),
      set_(set),
      labels_(std::size_t(n), 0),
      seconds_(std::size_t(n), -1),
      best_(std::size_t(n), 0),
      next_(std::size_t(n), 0),
      norms_(std::size_t(n)),
      rest_(std::size_t(n), 0),
      order_(std::size_t(n)) {
    const std::int64_t n_chunks = divided(n, kChunkRows);
    std::vector<double> sums(static_cast<std::size_t>(n_chunks), 0);
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const std::int64_t first = c * kChunkRows, count = std::min(kChunkRows, n - first);
        double squares[kChunkRows];
        set_.routines.square_rows(rows_ + first * n_columns_, n_columns_, {0, count}, squares, own_poll);
        for (std::int64_t i = 0; i < count; ++i) {
            norms_[first + i] = float(squares[i]);
            sums[std::size_t(c)] += weights[first + i] * squares[i];
        }
        return true;
    };
    for_each_chunk(n_chunks, threads_for(work_of_rows(n, n_columns, 0), n_threads), chunk, poll);
    scatter_ = std::accumulate(sums.begin(), sums.end(), 0.0);
}

RowsView LocalSearch::view(const std::int64_t* index) const { return float_rows(rows_, n_, n_columns_, index); }

CentersView LocalSearch::centers() const { return {centers_.data(), offset_.data(), n_centers_, n_columns_}; }

void LocalSearch::place(const float* centers, std::int64_t n_centers, const Poll& poll) {
    const auto K = std::size_t(n_centers);
    n_centers_ = n_centers;
    centers_.resize(std::size_t(n_centers * n_columns_));
    offset_.resize(K);
    weights_in_.assign(K, 0);
    explained_.assign(K, 0);
    gains_.assign(K, 0);
    changed_.assign(K, 1);
    stale_.assign(K, 1);
    moved_.assign(K, 1);
    std::vector<double> values(static_cast<std::size_t>(n_columns_));
    for (std::int64_t k = 0; k < n_centers; ++k) {
        std::copy_n(centers + k * n_columns_, n_columns_, values.begin());
        set_center(k, values.data());
    }
    groups_.divide(this->centers(), true, set_, n_threads_, poll);
    const double before = groups_.work();
    groups_.label(results(nullptr), n_, kFirstGroups, this->centers(), set_, n_threads_, poll);
    work_ += groups_.work() - before;
    rest_.assign(std::size_t(n_), 0);
    is_grouped_ = false;
    find_neighbours(poll);
    is_fresh_ = true;
    is_compared_ = false;
}

// Put a center where these values are, or in their direction; returns the square of the way it has moved.
double LocalSearch::set_center(std::int64_t k, const double* values) {
    float* const center = centers_.data() + k * n_columns_;
    double square = 0, way = 0;
    for (std::int64_t d = 0; d < n_columns_; ++d) square += values[d] * values[d];
    if (spherical_ && !(square > 0)) return 0;  // without a direction it stays where it is
    const double scale = spherical_ ? 1 / std::sqrt(square) : 1;
    for (std::int64_t d = 0; d < n_columns_; ++d) {
        const float value = float(scale * values[d]);
        way += double(value - center[d]) * (value - center[d]);
        center[d] = value;
    }
    offset_[k] = float(-scale * scale * square / 2);
    return way;
}

void LocalSearch::find_neighbours(const Poll& poll) {
    const double before = groups_.work();
    gaps_ = groups_.find_neighbours(centers(), set_, n_threads_, poll);
    drift_ = 0;
    work_ += groups_.work() - before;
}

void LocalSearch::group(const Poll& poll) {
    if (is_grouped_) return;
    starts_.resize(std::size_t(n_centers_ + 1));
    group_by_label(labels_.data(), n_, n_centers_, order_.data(), starts_.data(), poll);
    is_grouped_ = true;
    work_ += double(n_) * kWorkPerRow;
}

// A comparison of these rows, or of all, whose results are kept.
ListJob LocalSearch::results(const std::int64_t* index) {
    ListJob job{};
    job.rows = view(index);
    job.labels = labels_.data();
    job.seconds = seconds_.data();
    job.best = best_.data();
    job.next = next_.data();
    return job;
}

// Whether a center that rows of this cluster are compared with has moved.
bool LocalSearch::is_near_moved(std::int64_t cluster) const {
    const std::int32_t* const near = groups_.near(cluster);
    return std::any_of(near, near + groups_.n_near(), [&](std::int32_t k) { return moved_[k]; });
}

// Compare the rows of every cluster with its center and the neighbours of that; returns how many labels have changed.
std::int64_t LocalSearch::assign(const Poll& poll) {
    group(poll);
    ListJob job = results(order_.data());
    job.centers = centers_.data();
    job.offset = offset_.data();
    job.n_listed = groups_.n_near();
    const int n_threads = threads_for(work_of_rows(n_, n_columns_, job.n_listed), n_threads_);
    const std::int64_t n_chunks = divided(n_centers_, kChunkClusters);
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads));
    std::vector<std::vector<char>> touched(static_cast<std::size_t>(n_threads));
    std::vector<std::int64_t> n_changed(static_cast<std::size_t>(n_chunks), 0), n_compared(n_changed);
    is_grouped_ = false;
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        memory[thread].resize(std::size_t((n_columns_ + kStagingColumns) * set_.single.nearest.lanes));
        touched[thread].resize(std::size_t(n_centers_), 0);
        ListJob own = job;
        for (std::int64_t i = c * kChunkClusters; i < std::min(n_centers_, (c + 1) * kChunkClusters); ++i) {
            const std::int64_t k =
                groups_.by_group()[i];  // neighbours one after the other: their centers are in the cache
            const Range rows{starts_[k], starts_[k + 1] - starts_[k]};
            if (!rows.count || !is_near_moved(k)) continue;
            own.list = groups_.near(k);
            set_.routines.nearest_listed(own, rows, memory[thread].data(), own_poll);
            n_compared[c] += rows.count;
            for (std::int64_t m = rows.first; m < rows.first + rows.count; ++m) {
                const std::int32_t label = labels_[order_[m]];
                if (label == k) continue;
                touched[thread][k] = touched[thread][label] = 1;
                ++n_changed[c];
            }
        }
        return true;
    };
    for_each_chunk(n_chunks, n_threads, chunk, poll);
    for (const auto& own : touched)
        for (std::size_t k = 0; k < own.size(); ++k) changed_[k] |= own[k], stale_[k] |= own[k];
    std::fill(moved_.begin(), moved_.end(), 0);
    const std::int64_t compared = std::accumulate(n_compared.begin(), n_compared.end(), std::int64_t(0));
    work_ += work_of_rows(compared, n_columns_, job.n_listed) + double(n_) * kWorkPerRow;
    return std::accumulate(n_changed.begin(), n_changed.end(), std::int64_t(0));
}

// Move every center whose rows have changed to their mean; returns the sum of the squared shifts.
double LocalSearch::update(const Poll& poll) {
    double score = 0;
    for (std::int64_t i = 0; i < n_; ++i) score += weights_[i] * double(best_[i]);
    group(poll);
    std::vector<std::int64_t> clusters;
    for (std::int64_t k = 0; k < n_centers_; ++k)
        if (changed_[k]) clusters.push_back(k);
    const double share = double(clusters.size()) / double(n_centers_);
    const double work = share * work_of_rows(n_, n_columns_, 1);
    const int n_threads = threads_for(work, n_threads_);
    std::vector<double> ways(clusters.size(), 0);
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(n_threads));
    const auto chunk = [&](std::int64_t c, int thread, const Poll&) {
        std::vector<double>& sum = sums[thread];
        const std::int64_t k = clusters[c], first = starts_[k], count = starts_[k + 1] - first;
        sum.assign(std::size_t(n_columns_), 0);
        const double weight =
            set_.routines.sum_rows(rows_, n_columns_, order_.data() + first, count, weights_, sum.data());
        const double square = std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0);
        weights_in_[k] = weight;
        explained_[k] = !(weight > 0) ? 0 : spherical_ ? 2 * std::sqrt(square) - weight : square / weight;
        changed_[k] = 0;
        if (!(weight > 0)) return true;  // an empty cluster keeps its center, which costs nothing to remove
        for (double& value : sum) value /= weight;
        ways[c] = set_center(k, sum.data());
        moved_[k] = ways[c] > 0;
        return true;
    };
    for_each_chunk(std::int64_t(clusters.size()), n_threads, chunk, poll);
    work_ += work;
    const double objective = scatter_ - std::accumulate(explained_.begin(), explained_.end(), 0.0);
    objective_ = objective > kCancelled * scatter_ ? objective : 0;
    assigned_ = std::max(scatter_ - 2 * score, objective_);  // scores are rounded
    const double shifts = std::accumulate(ways.begin(), ways.end(), 0.0);
    drift_ += shifts;
    return shifts;
}

// Find neighbours again if centers have moved far; whether rows may have missed centers since they were last in doubt.
bool LocalSearch::follow(const Poll& poll) {
    if (drift_ <= kDrift * gaps_) return std::exchange(is_fresh_, false);
    groups_.divide(centers(), false, set_, n_threads_, poll);
    find_neighbours(poll);
    std::fill(moved_.begin(), moved_.end(), 1);
    is_fresh_ = false;
    return true;
}

// The rows that are farthest from their centers, a share of all, but not those that were in doubt of late.
std::vector<std::int64_t> LocalSearch::farthest() const {
    std::vector<float> squares;
    for (std::int64_t i = 0; i < n_; ++i)
        if (!rest_[i]) squares.push_back(norms_[i] - 2 * best_[i]);
    const auto count = std::min(std::int64_t(squares.size()), divided(n_, kDoubtful));
    std::vector<std::int64_t> rows;
    if (!count) return rows;
    std::nth_element(squares.begin(), squares.begin() + (count - 1), squares.end(), std::greater<>());
    const float least = squares[std::size_t(count - 1)];
    for (std::int64_t i = 0; i < n_ && std::int64_t(rows.size()) < count; ++i)
        if (!rest_[i] && norms_[i] - 2 * best_[i] >= least) rows.push_back(i);
    return rows;
}

// Look more widely for the centers of rows that are far from theirs; returns how many labels have changed.
std::int64_t LocalSearch::doubt(const Poll& poll) {
    for (std::uint8_t& rest : rest_) rest -= rest > 0;
    const std::vector<std::int64_t> rows = farthest();
    const auto n = std::int64_t(rows.size());
    std::vector<std::int32_t> labels(rows.size()), seconds(labels);
    std::vector<float> best(rows.size()), next(best);
    for (std::int64_t i = 0; i < n; ++i) {
        labels[i] = labels_[rows[i]], seconds[i] = seconds_[rows[i]];
        best[i] = best_[rows[i]], next[i] = next_[rows[i]];
    }
    const double before = groups_.work();
    groups_.label(results(rows.data()), n, kManyGroups, centers(), set_, n_threads_, poll);
    work_ += groups_.work() - before;
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = rows[i];
        rest_[row] = kRest;
        if (best_[row] > best[i] && labels_[row] != labels[i]) {
            for (const std::int32_t k : {labels[i], labels_[row]}) changed_[k] = stale_[k] = 1;
            ++changed;
        } else {
            labels_[row] = labels[i], seconds_[row] = seconds[i];
            best_[row] = best[i], next_[row] = next[i];
        }
    }
    is_grouped_ = is_grouped_ && !changed;
    return changed;
}

void LocalSearch::label(const Poll& poll) {
    if (!n_centers_) throw std::invalid_argument("place centers first");
    follow(poll);
    assign(poll);
    doubt(poll);
}

std::int64_t LocalSearch::iterate(std::int64_t most, double tol, bool until_empty, const Poll& poll) {
    if (!n_centers_) throw std::invalid_argument("place centers first");
    converged_ = false;
    history_.clear();
    for (std::int64_t done = 0; done < most;) {
        const bool in_doubt = follow(poll);
        std::int64_t changed = assign(poll);
        if (in_doubt) changed += doubt(poll);
        ++done;
        const bool still = changed == 0 && std::none_of(changed_.begin(), changed_.end(), [](char c) { return c; });
        if (still) assigned_ = objective_;
        converged_ = still || update(poll) <= tol;
        history_.push_back(assigned_);
        history_.push_back(objective_);
        is_compared_ = true;
        if (converged_ || (until_empty && n_empty() > 0)) return done;
    }
    return most;
}

void LocalSearch::means(double* out) const { std::copy(centers_.begin(), centers_.end(), out); }

double LocalSearch::pass_work() const {
    return work_of_rows(n_, n_columns_, groups_.n_near() + 1) + double(n_) * kWorkPerRow;
}

std::int64_t LocalSearch::n_empty() const { return std::count(weights_in_.begin(), weights_in_.end(), 0.0); }

}  // namespace quickmeans
