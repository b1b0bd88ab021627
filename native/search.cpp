// Moves of centers that pay: see search.hpp.
#include "search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "moves.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// For every empty cluster so many others, those that add most to the objective, are tried for a split.
constexpr std::int64_t kTriedPerEmpty = 8;
}  // namespace

void Search::go_back() {
    if (!kept_.n_centers) throw std::invalid_argument("nothing was kept");
    now_ = kept_;
}

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

// What the removal of each center would add to the objective, as far as `most` removals ask for it.
void Search::price(std::int64_t most, const Poll& poll) {
    prices_.assign(std::size_t(now_.n_centers), 0);
    if (n_empty() >= most) {  // no other center will be removed
        make_room_for_seconds();
        for (std::int64_t k = 0; k < now_.n_centers; ++k)
            if (now_.weights[k] > 0) prices_[k] = std::numeric_limits<double>::infinity();
        return;
    }
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

// The clusters whose rows add most to the objective, so many.
std::vector<char> Search::widest(std::int64_t most) const {
    std::vector<double> scatters(std::size_t(now_.n_centers), 0);
    for (std::int64_t i = 0; i < n_; ++i) scatters[now_.labels[i]] -= weights_[i] * double(norms_[i]);
    for (std::int64_t k = 0; k < now_.n_centers; ++k) {
        const double* const sum = now_.sums.data() + k * n_columns_;
        const double along = std::inner_product(sum, sum + n_columns_, now_.centers.data() + k * n_columns_, 0.0);
        scatters[k] += 2 * along - now_.weights[k] * double(now_.squares[k]);
    }
    const std::vector<std::int64_t> places = ascending(scatters);
    std::vector<char> chosen(std::size_t(now_.n_centers), 0);
    for (std::int64_t i = 0; i < std::min(most, now_.n_centers); ++i) chosen[places[i]] = 1;
    return chosen;
}

// Find the gains of all clusters whose rows have changed.
void Search::split_all(const Poll& poll) { split_some(std::vector<char>(std::size_t(now_.n_centers), 1), poll); }

// The same for some of them.
void Search::split_some(const std::vector<char>& chosen, const Poll& poll) {
    std::vector<std::int64_t> stale;
    for (std::int64_t k = 0; k < now_.n_centers; ++k)
        if (now_.stale[k] && chosen[k]) stale.push_back(k);
    group(poll);
    const SplitJob job{.rows = view(nullptr),
                       .weights = weights_,
                       .order = order_.data(),
                       .starts = starts_.data(),
                       .centers = now_.centers.data(),
                       .cluster_weights = now_.weights.data(),
                       .most = 0,
                       .gains = now_.gains.data()};
    const auto pair_of = [&](std::int64_t i, int) { return now_.pairs.data() + 2 * stale[i] * n_columns_; };
    work_ += split_clusters(job, stale, pair_of, set_, n_threads_, poll);
    for (const std::int64_t k : stale) now_.stale[k] = 0;
}

Receivers Search::receivers() const {
    return {order_.data(), starts_.data(), now_.seconds.data(), weights_, now_.weights.data()};
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

// Both means of a split. Of an empty cluster, the other one keeps its number near where it was.
void Search::place_pair(const Swap& s, const float* pair) {
    const float* const center = now_.centers.data() + s.split * n_columns_;
    double nearer = 0;  // by how much the second mean is nearer to the center than the first
    if (!(now_.weights[s.removed] > 0))
        for (std::int64_t d = 0; d < n_columns_; ++d) {
            const double first = double(center[d]) - pair[d], second = double(center[d]) - pair[n_columns_ + d];
            nearer += first * first - second * second;
        }
    set_center(s.split, pair + (nearer > 0 ? n_columns_ : 0));
    set_center(s.removed, pair + (nearer > 0 ? 0 : n_columns_));
}

std::int64_t Search::swap(std::int64_t most, const Poll& poll) {
    require_labels();
    move_all_bounds(poll);
    price(most, poll);
    std::vector<double> gains = now_.gains;
    if (n_empty() >= most) {
        const std::vector<char> chosen = widest(kTriedPerEmpty * most);
        split_some(chosen, poll);
        for (std::int64_t k = 0; k < now_.n_centers; ++k) gains[k] = chosen[k] ? now_.gains[k] : 0;
    } else {
        split_all(poll);
        gains = now_.gains;
    }
    std::vector<char> touched(std::size_t(now_.n_centers), 0);
    std::vector<std::int64_t> slots;
    const double least = least_gain(now_.objective, scatter_);
    const std::vector<Swap> swaps = choose_swaps(prices_, gains, most, least, receivers());
    if (swaps.empty()) return 0;
    for (const Swap& s : swaps) {
        const float* const pair = now_.pairs.data() + 2 * s.split * n_columns_;
        place_pair(s, pair);
        touched[s.split] = touched[s.removed] = 1;
        slots.push_back(s.split);
        slots.push_back(s.removed);
    }
    for (const std::int64_t k : slots) now_.changed[k] = 1;
    see_new(slots, poll);
    doubt(touched);
    return std::int64_t(swaps.size());
}

std::int64_t Search::grow(std::int64_t most, const Poll& poll) {
    require_labels();
    move_all_bounds(poll);
    split_all(poll);
    const std::int64_t K = now_.n_centers;
    std::vector<double> losses(now_.gains);
    for (double& loss : losses) loss = -loss;
    std::vector<std::int64_t> wide = ascending(losses), slots;
    const double least = least_gain(now_.objective, scatter_);
    while (!wide.empty() && !(now_.gains[wide.back()] > least)) wide.pop_back();
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
    price(now_.n_centers, poll);
    group(poll);
    const std::int64_t K = now_.n_centers;
    const std::vector<std::int64_t> cheap = ascending(prices_);
    std::vector<char> frozen(std::size_t(K), 0), removed(std::size_t(K), 0);
    std::vector<double> received(std::size_t(K), 0);
    std::int64_t left = std::min(count, K - 1);
    for (const bool strict : {true, false})
        for (const std::int64_t k : cheap) {
            if (!left) break;
            if (removed[k] || (strict && frozen[k])) continue;
            receivers().freeze(k, frozen, received);
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
