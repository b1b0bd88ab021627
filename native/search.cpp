// Moves of centers that pay: see search.hpp.
#include "search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// A center that would get this share of a removed cluster's weight is not removed in the same round.
constexpr double kReceiverShare = 0.1;
constexpr std::int64_t kSplitRows = 128;         // of a cluster, at least, that a split looks at
constexpr std::int64_t kSplitEntries = 1 << 16;  // more of them, as far as they fill a 256 KB cache
constexpr double kSplitWork = 24;                // multiply-adds for every entry of such a row
constexpr double kLeastGain = 1e-9;              // of the objective
constexpr double kRounding = 1e-12;              // of the scatter: squares of 1e-7, and more

// What the split of a cluster needs: at most `most` rows, filled up to a vector, three numbers for each, and a few
// more.
constexpr std::int64_t split_scratch(std::int64_t most, std::int64_t n_columns) {
    return (most + 16) * (n_columns + 3) + 16 * 64 + 3 * n_columns;
}

}  // namespace

void Search::go_back() {
    if (!kept_.n_centers) throw std::invalid_argument("nothing was kept");
    now_ = kept_;
}

// A smaller gain is rounding: of the sums in float64, or of the rows in float32.
double Search::least_gain() const { return kLeastGain * now_.objective + kRounding * scatter_; }

// Moves need to know whose the rows are.
void Search::require_labels() const {
    if (now_.summed.empty() || now_.summed[0] < 0) throw std::invalid_argument("iterate first");
}

// The scores of the two nearest centers of every row, where no bounds are kept.
void Search::find_seconds(const Poll& poll) {
    pack();
    make_room_for_seconds();
    const int n_threads = threads_for(work_of_rows(n_, n_columns_, now_.n_centers), n_threads_);
    memory_.resize(std::size_t(n_threads));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        std::vector<float>& memory = memory_[std::size_t(thread)];
        memory.resize(std::size_t((n_columns_ + kStagingColumns) * set_.single.nearest.lanes));
        set_.single.nearest.run(nearest_job(nullptr, true), chunk_of(c), memory.data(), own_poll);
        return true;
    };
    for_each_chunk(n_chunks(), n_threads, chunk, poll);
    work_ += work_of_rows(n_, n_columns_, now_.n_centers);
}

// What the removal of each center would add to the objective.
void Search::price(const Poll& poll) {
    prices_.assign(std::size_t(now_.n_centers), 0);
    if (!now_.bounded) {
        find_seconds(poll);
        for (std::int64_t i = 0; i < n_; ++i)
            if (now_.seconds[i] >= 0)
                prices_[now_.labels[i]] += weights_[i] * (2 * (double(best_[i]) - double(next_[i])));
            else
                prices_[now_.labels[i]] = std::numeric_limits<double>::infinity();
        return;
    }
    first_.resize(std::size_t(n_));
    second_.resize(std::size_t(n_));
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const Range range = chunk_of(c);
        const float* const centers = now_.centers.data();
        set_.routines.own_distances(rows_, centers, n_columns_, now_.labels.data(), range, first_.data(), own_poll);
        set_.routines.own_distances(rows_, centers, n_columns_, now_.seconds.data(), range, second_.data(), own_poll);
        return true;
    };
    const double work = 2 * work_of_rows(n_, n_columns_, 0);
    for_each_chunk(n_chunks(), threads_for(work, n_threads_), chunk, poll);
    work_ += work;
    for (std::int64_t i = 0; i < n_; ++i)
        prices_[now_.labels[i]] += weights_[i] * std::max(double(second_[i]) - double(first_[i]), 0.0);
}

// Find the gains of all clusters whose rows have changed.
void Search::split_all(const Poll& poll) {
    std::vector<std::int64_t> stale;
    for (std::int64_t k = 0; k < now_.n_centers; ++k)
        if (now_.stale[k]) stale.push_back(k);
    group(poll);
    const std::int64_t most = std::max(kSplitRows, kSplitEntries / n_columns_);
    const SplitJob job{.rows = view(nullptr),
                       .weights = weights_,
                       .order = order_.data(),
                       .starts = starts_.data(),
                       .centers = now_.centers.data(),
                       .cluster_weights = now_.weights.data(),
                       .most = most,
                       .gains = now_.gains.data(),
                       .pairs = now_.pairs.data()};
    const double share = double(stale.size()) / double(now_.n_centers), seen = double(most * now_.n_centers);
    const double work = share * std::min(double(n_), seen) * (kSplitWork * double(n_columns_) + kWorkPerRow);
    const int n_threads = threads_for(work, n_threads_);
    std::vector<std::vector<float>> scratch(static_cast<std::size_t>(n_threads));
    std::vector<std::vector<std::int64_t>> index(static_cast<std::size_t>(n_threads));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        scratch[thread].resize(std::size_t(split_scratch(std::min(most, n_), n_columns_)));
        index[thread].resize(std::size_t(std::min(most, n_)));
        set_.routines.split(job, stale[c], scratch[thread].data(), index[thread].data(), own_poll);
        return true;
    };
    for_each_chunk(std::int64_t(stale.size()), n_threads, chunk, poll);
    work_ += work;
    std::fill(now_.stale.begin(), now_.stale.end(), 0);
}

std::vector<std::int64_t> Search::by_price() const {
    std::vector<std::int64_t> clusters(std::size_t(now_.n_centers));
    std::iota(clusters.begin(), clusters.end(), 0);
    std::stable_sort(clusters.begin(), clusters.end(), [&](auto a, auto b) { return prices_[a] < prices_[b]; });
    return clusters;
}

std::vector<std::int64_t> Search::by_gain() const {
    std::vector<std::int64_t> clusters(std::size_t(now_.n_centers));
    std::iota(clusters.begin(), clusters.end(), 0);
    const auto& gains = now_.gains;
    std::stable_sort(clusters.begin(), clusters.end(), [&](auto a, auto b) { return gains[a] > gains[b]; });
    return clusters;
}

// Mark the centers that would get much of a removed cluster.
void Search::freeze_receivers(std::int64_t cluster, std::vector<char>& frozen) const {
    std::vector<double> received(std::size_t(now_.n_centers), 0);
    for (std::int64_t m = starts_[cluster]; m < starts_[cluster + 1]; ++m) {
        const std::int64_t row = order_[m];
        if (now_.seconds[row] >= 0) received[now_.seconds[row]] += weights_[row];
    }
    for (std::int64_t k = 0; k < now_.n_centers; ++k)
        if (received[k] > kReceiverShare * now_.weights[cluster]) frozen[k] = 1;
}

// Rows of these clusters, and rows next to them, are to be compared with all centers.
void Search::doubt(const std::vector<char>& clusters) {
    if (!now_.bounded) return;
    for (std::int64_t i = 0; i < n_; ++i)
        if (clusters[now_.labels[i]] || (now_.seconds[i] >= 0 && clusters[now_.seconds[i]])) now_.lower[i] = 0;
}

// Lower the bounds of all rows to the new centers.
void Search::see_new(const std::vector<std::int64_t>& slots, const Poll& poll) {
    if (!now_.bounded) return;
    const std::int64_t K = now_.n_centers;
    measure(slots, poll);
    if (!few_centers()) {
        std::fill(now_.lower.begin(), now_.lower.end(), 0.f);
        return;
    }
    std::vector<float> nearest(std::size_t(K), kInfinity);
    for (std::int64_t k = 0; k < K; ++k)
        for (const std::int64_t j : slots)
            if (j != k) nearest[k] = std::min(nearest[k], now_.apart[k * K + j]);
    for (std::int64_t i = 0; i < n_; ++i)
        now_.lower[i] = std::min(now_.lower[i], std::max(nearest[now_.labels[i]] - now_.upper[i], 0.f));
}

std::int64_t Search::swap(std::int64_t most, const Poll& poll) {
    require_labels();
    move_all_bounds(poll);
    price(poll);
    split_all(poll);
    const std::int64_t K = now_.n_centers;
    const std::vector<std::int64_t> cheap = by_price(), wide = by_gain();
    std::vector<char> frozen(std::size_t(K), 0), touched(std::size_t(K), 0);
    std::vector<std::int64_t> slots;
    std::int64_t count = 0, next = 0;
    for (const std::int64_t cluster : wide) {
        if (count == most) break;
        if (touched[cluster]) continue;
        while (next < K && (frozen[cheap[next]] || touched[cheap[next]])) ++next;
        std::int64_t at = next;
        while (at < K && (cheap[at] == cluster || frozen[cheap[at]] || touched[cheap[at]])) ++at;
        if (at == K) break;
        const std::int64_t removed = cheap[at];
        const double profit = now_.gains[cluster] - prices_[removed];
        if (!(profit > least_gain())) break;
        freeze_receivers(removed, frozen);
        touched[cluster] = touched[removed] = 1;
        const float* const pair = now_.pairs.data() + 2 * cluster * n_columns_;
        set_center(cluster, pair);
        set_center(removed, pair + n_columns_);
        slots.push_back(cluster);
        slots.push_back(removed);
        ++count;
    }
    if (!count) return 0;
    for (const std::int64_t k : slots) now_.changed[k] = 1;
    see_new(slots, poll);
    doubt(touched);
    return count;
}

std::int64_t Search::grow(std::int64_t most, const Poll& poll) {
    require_labels();
    move_all_bounds(poll);
    split_all(poll);
    const std::int64_t K = now_.n_centers;
    std::vector<std::int64_t> wide = by_gain(), slots;
    while (!wide.empty() && !(now_.gains[wide.back()] > least_gain())) wide.pop_back();
    if (std::int64_t(wide.size()) > most) wide.resize(std::size_t(most));
    if (wide.empty()) return 0;
    resize(K + std::int64_t(wide.size()));
    std::vector<char> touched(std::size_t(now_.n_centers), 0);
    for (std::size_t i = 0; i < wide.size(); ++i) {
        const std::int64_t cluster = wide[i], slot = K + std::int64_t(i);
        const std::vector<float> pair(now_.pairs.data() + 2 * cluster * n_columns_,
                                      now_.pairs.data() + 2 * (cluster + 1) * n_columns_);
        set_center(cluster, pair.data());
        set_center(slot, pair.data() + n_columns_);
        now_.changed[cluster] = now_.changed[slot] = touched[cluster] = 1;
        slots.push_back(cluster);
        slots.push_back(slot);
    }
    now_.apart.clear();
    if (now_.bounded) measure_all(poll);
    see_new(slots, poll);
    doubt(touched);
    return std::int64_t(wide.size());
}

void Search::shrink(std::int64_t count, const Poll& poll) {
    require_labels();
    move_all_bounds(poll);
    price(poll);
    group(poll);
    const std::int64_t K = now_.n_centers;
    const std::vector<std::int64_t> cheap = by_price();
    std::vector<char> frozen(std::size_t(K), 0), removed(std::size_t(K), 0);
    std::int64_t left = std::min(count, K - 1);
    for (const bool strict : {true, false})
        for (const std::int64_t k : cheap) {
            if (!left) break;
            if (removed[k] || (strict && frozen[k])) continue;
            freeze_receivers(k, frozen);
            removed[k] = 1;
            --left;
        }
    doubt(removed);
    std::vector<std::int32_t> place(std::size_t(K), -1);
    std::int64_t kept = 0;
    const auto close_up = [&](auto& values, std::int64_t from, std::int64_t width) {
        std::copy_n(values.begin() + from * width, width, values.begin() + kept * width);
    };
    for (std::int64_t k = 0; k < K; ++k) {
        if (removed[k]) continue;
        place[k] = std::int32_t(kept);
        for (auto* values : {&now_.weights, &now_.gains}) close_up(*values, k, 1);
        for (auto* flags : {&now_.changed, &now_.stale}) close_up(*flags, k, 1);
        close_up(now_.squares, k, 1);
        close_up(now_.sizes, k, 1);
        close_up(now_.centers, k, n_columns_);
        close_up(now_.sums, k, n_columns_);
        close_up(now_.pairs, k, 2 * n_columns_);
        ++kept;
    }
    resize(kept);
    for (std::int64_t i = 0; i < n_; ++i) {
        // A row that has lost its center is in doubt, and goes to its second until it is assigned.
        const std::int32_t own = place[now_.labels[i]], other = now_.seconds[i] < 0 ? -1 : place[now_.seconds[i]];
        now_.labels[i] = own >= 0 ? own : other >= 0 ? other : 0;
        now_.seconds[i] = own >= 0 ? other : -1;
        if (own < 0 && now_.bounded) now_.upper[i] = kInfinity;
        if (own < 0) now_.changed[now_.labels[i]] = 1;
        now_.summed[i] = now_.summed[i] < 0 ? -1 : place[now_.summed[i]];
    }
    now_.apart.clear();
    if (now_.bounded) measure_all(poll);
}

}  // namespace quickmeans
