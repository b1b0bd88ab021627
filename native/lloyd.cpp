// Lloyd's iteration with bounds: see search.hpp.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "float_rows.hpp"
#include "grouping.hpp"
#include "nearest.hpp"
#include "parallel.hpp"
#include "search.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Changes are added up in blocks of at least so many per center, so that adding up the blocks is little work, and in at
// most so many blocks.
constexpr std::int64_t kChangesPerCenter = 16, kMostBlocks = 32;
// Comparing a row with all centers must take as long as this many multiply-adds for bounds to be worth their keeping.
constexpr double kBoundsPay = 1200;
// With bounds a search compares about a quarter of the rows in an iteration; it may take as many iterations without.
constexpr double kUnbounded = 4;
constexpr double kWorkPerMean = 16;  // a number of a center: pack it, move it, add up its squares
// With more centers, a row in doubt is first compared with its own: that takes as long as comparing it with a few
// dozen.
constexpr std::int64_t kTighten = 32;
// An objective that is a smaller share of the scatter is nothing but rounding in float64.
constexpr double kCancelled = 1e-13;

constexpr Poll kQuiet{[](void*) {}, nullptr};

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
      chunk_rows_(kMostChunkRows / set.single.nearest.lanes * set.single.nearest.lanes),
      rounding_(rounding_of(n_columns)),
      norms_(std::size_t(n)),
      changes_(std::size_t(n)) {
    std::vector<double> sums(std::size_t(n_chunks()), 0);
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const Range part = chunk_of(c);
        double squares[kMostChunkRows];
        set_.routines.square_rows(rows_ + part.first * n_columns_, n_columns_, {0, part.count}, squares, own_poll);
        for (std::int64_t i = 0; i < part.count; ++i) {
            norms_[part.first + i] = float(squares[i]);
            sums[std::size_t(c)] += weights[part.first + i] * squares[i];
        }
        return true;
    };
    for_each_chunk(n_chunks(), threads_for(work_of_rows(n, n_columns, 0), n_threads), chunk, poll);
    scatter_ = std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Scores and squares in float32 are wrong by at most so large a share of the squares in them: twice the root of the
// number of roundings, and some.
float Search::rounding_of(std::int64_t n_columns) { return 6e-8f * (16 + 2 * std::sqrt(float(n_columns))); }

RowsView Search::view(const std::int64_t* index) const { return float_rows(rows_, n_, n_columns_, index); }

std::int64_t Search::n_chunks() const { return (n_ + chunk_rows_ - 1) / chunk_rows_; }

Range Search::chunk_of(std::int64_t c) const { return {c * chunk_rows_, std::min(chunk_rows_, n_ - c * chunk_rows_)}; }

// Where every row is compared in every iteration, rows are transposed once.
void Search::make_tiles(const Poll& poll) {
    if (!tiles_.empty()) return;
    const std::int64_t lanes = set_.single.nearest.lanes;
    std::vector<float, RawPages<float>> tiles(std::size_t((n_ + lanes - 1) / lanes * lanes * n_columns_));
    const RowsView rows = view(nullptr);
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        std::vector<float> staging(std::size_t(lanes * kStagingColumns));
        set_.single.nearest.make_tiles(rows, chunk_of(c), tiles.data(), staging.data());
        return true;
    };
    for_each_chunk(n_chunks(), threads_for(work_of_rows(n_, n_columns_, 0), n_threads_), chunk, poll);
    tiles_.swap(tiles);
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
    now_.sizes.resize(K);
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
    const auto n = std::size_t(n_);
    now_.labels.assign(n, -1);
    now_.summed.assign(n, -1);
    now_.bounded = double(n_centers) * (double(n_columns_) + kWorkPerScore) > kBoundsPay;
    if (!now_.bounded) return make_tiles(poll);
    make_room_for_seconds();
    now_.upper.assign(n, kInfinity);
    now_.lower.assign(n, 0);
    measure_all(poll);
}

// ---- Lloyd's iteration ----------------------------------------------------------------------------------------------

void Search::pack() {
    const auto offset_of = [&](std::int64_t k) { return -now_.squares[k] / 2; };
    pack_panels(now_.centers.data(), now_.n_centers, n_columns_, offset_of, panels_, offset_);
}

NearestJob<float> Search::nearest_job(const std::int64_t* index, bool two) {
    NearestJob<float> job{};
    job.rows = view(index);
    job.tiles = index ? nullptr : tiles_.data();
    job.panels = panels_.data();
    job.offset = offset_.data();
    job.n_centers = now_.n_centers;
    job.limit = std::numeric_limits<float>::max();
    job.labels = now_.labels.data();
    if (!two) return job;
    job.seconds = now_.seconds.data();
    job.best = best_.data();
    job.next = next_.data();
    return job;
}

// Memory for what is known of the second nearest centers.
void Search::make_room_for_seconds() {
    now_.seconds.resize(std::size_t(n_), -1);
    best_.resize(std::size_t(n_));
    next_.resize(std::size_t(n_));
}

// Label the rows of a chunk that are in doubt; how many were.
std::int64_t Search::assign_chunk(std::int64_t c, int thread, const Poll& poll) {
    const Range rows = chunk_of(c);
    std::vector<float>& memory = memory_[std::size_t(thread)];
    memory.resize(std::size_t((n_columns_ + kStagingColumns) * set_.single.nearest.lanes));
    if (!now_.bounded) {
        set_.single.nearest.run(nearest_job(nullptr, false), rows, memory.data(), poll);
        return rows.count;
    }
    std::int64_t doubtful[kMostChunkRows], count = 0;
    if (now_.labelled)
        count = move_bounds(rows, doubtful);
    else
        for (; count < rows.count; ++count) doubtful[count] = rows.first + count;
    if (now_.labelled && now_.n_centers > kTighten) count = tighten(doubtful, count, poll);
    compare(doubtful, count, memory.data(), poll);
    std::vector<float>& largest = largest_[std::size_t(thread)];
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i)
        largest[now_.labels[i]] = std::max(largest[now_.labels[i]], now_.upper[i]);
    return count;
}

// Give every row in doubt its nearest centers; returns how many labels have changed.
std::int64_t Search::assign(const Poll& poll) {
    pack();
    largest_square_ = *std::max_element(now_.squares.begin(), now_.squares.end());
    const int n_threads = threads_for(work_of_rows(n_, n_columns_, now_.n_centers), n_threads_);
    memory_.resize(std::size_t(n_threads));
    largest_.assign(now_.bounded ? std::size_t(n_threads) : 0, std::vector<float>(std::size_t(now_.n_centers), 0.f));
    n_changes_.assign(std::size_t(n_chunks()), 0);
    std::atomic<std::int64_t> all{0};
    std::vector<std::vector<char>> touched(std::size_t(n_threads), std::vector<char>(std::size_t(now_.n_centers), 0));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        all += assign_chunk(c, thread, own_poll);
        const Range rows = chunk_of(c);
        const std::int32_t *const labels = now_.labels.data() + rows.first, *const summed =
                                                                                now_.summed.data() + rows.first;
        std::uint16_t* const changes = changes_.data() + rows.first;
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < rows.count; ++i) {
            changes[count] = std::uint16_t(i);
            count += labels[i] != summed[i];
        }
        std::vector<char>& own = touched[std::size_t(thread)];
        for (std::int64_t j = 0; j < count; ++j) {
            if (summed[changes[j]] >= 0) own[summed[changes[j]]] = 1;
            own[labels[changes[j]]] = 1;
        }
        n_changes_[std::size_t(c)] = count;
        return true;
    };
    for_each_chunk(n_chunks(), n_threads, chunk, poll);
    now_.moved = false;
    now_.labelled = true;
    for (const auto& own : touched)
        for (std::int64_t k = 0; k < now_.n_centers; ++k) now_.changed[k] |= own[k];
    const double skipped = now_.bounded ? double(n_) * kWorkPerSkipped : 0;
    work_ += work_of_rows(all, n_columns_, now_.n_centers) + skipped;
    return std::accumulate(n_changes_.begin(), n_changes_.end(), std::int64_t(0));
}

void Search::group(const Poll& poll) {
    starts_.resize(std::size_t(now_.n_centers + 1));
    order_.resize(std::size_t(n_));
    group_by_label(now_.labels.data(), n_, now_.n_centers, order_.data(), starts_.data(), poll);
    work_ += double(n_) * kWorkPerRow;
}

// Bring the sums and the weights of the clusters to the labels: every row that has changed its label leaves one cluster
// and joins another. Many changes are added up in blocks of rows, each for itself, and then block by block: the number
// of blocks does not depend on that of threads, so no bit does.
void Search::exchange(std::int64_t n_changes, const Poll& poll) {
    const std::int64_t K = now_.n_centers, KD = K * n_columns_;
    const std::int64_t n_blocks = std::clamp<std::int64_t>(n_changes / (kChangesPerCenter * K), 1, kMostBlocks);
    const ChangeJob job{rows_, n_columns_, weights_, changes_.data(), now_.labels.data(), now_.summed.data()};
    std::vector<ClusterTotals> totals(std::size_t(n_blocks),
                                      {now_.sums.data(), now_.weights.data(), now_.sizes.data()});
    if (n_blocks > 1) {
        partial_.assign(std::size_t(n_blocks * (KD + K)), 0);
        partial_sizes_.assign(std::size_t(n_blocks * K), 0);
        for (std::int64_t b = 0; b < n_blocks; ++b) {
            double* const sums = partial_.data() + b * (KD + K);
            totals[std::size_t(b)] = {sums, sums + KD, partial_sizes_.data() + b * K};
        }
    }
    const auto block = [&](std::int64_t b, int, const Poll& own_poll) {
        for (std::int64_t c = b * n_chunks() / n_blocks; c < (b + 1) * n_chunks() / n_blocks; ++c)
            set_.routines.add_changes(job, {chunk_of(c).first, n_changes_[std::size_t(c)]}, totals[std::size_t(b)],
                                      own_poll);
        return true;
    };
    const double work = 2 * double(n_changes) * (double(n_columns_) + kWorkPerRow / 2);
    for_each_chunk(n_blocks, threads_for(work, n_threads_), block, poll);
    work_ += work;
    for (std::int64_t b = 0; n_blocks > 1 && b < n_blocks; ++b) add_totals(totals[std::size_t(b)]);
    for (std::int64_t k = 0; k < K; ++k)
        if (!now_.sizes[k]) now_.weights[k] = 0, std::fill_n(now_.sums.begin() + k * n_columns_, n_columns_, 0.0);
}

void Search::add_totals(const ClusterTotals& part) {
    const std::int64_t K = now_.n_centers;
    for (std::int64_t e = 0; e < K * n_columns_; ++e) now_.sums[e] += part.sums[e];
    for (std::int64_t k = 0; k < K; ++k) now_.weights[k] += part.weights[k], now_.sizes[k] += part.sizes[k];
}

// Move every center to the mean of its rows; returns the sum of the squared shifts.
double Search::update(std::int64_t n_changes, const Poll& poll) {
    const std::int64_t K = now_.n_centers, D = n_columns_;
    exchange(n_changes, poll);
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
    if (now_.bounded) {
        measure(moved, poll);
        set_steps(shift);
    }
    work_ += double(K * D) * kWorkPerMean;
    return shifts;
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

std::int64_t Search::iterate(std::int64_t most, double tol, bool until_empty, const Poll& poll) {
    if (!now_.n_centers) throw std::invalid_argument("place centers first");
    now_.converged = false;
    history_.clear();
    for (std::int64_t done = 0; done < most;) {
        const std::int64_t changed = assign(poll);
        ++done;
        const bool still =
            changed == 0 && std::none_of(now_.changed.begin(), now_.changed.end(), [](char c) { return c; });
        if (still) now_.assigned = now_.objective;
        now_.converged = still || update(changed, kQuiet) <= tol;  // some milliseconds, all or nothing
        history_.push_back(now_.assigned);
        history_.push_back(now_.objective);
        if (now_.converged || (until_empty && n_empty() > 0)) return done;
    }
    return most;
}

double Search::pass_work() const {
    const double all = work_of_rows(n_, n_columns_, now_.n_centers);
    return now_.bounded ? all : kUnbounded * all;
}

std::int64_t Search::n_empty() const { return std::count(now_.weights.begin(), now_.weights.end(), 0.0); }

}  // namespace quickmeans
