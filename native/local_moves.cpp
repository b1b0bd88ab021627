// Priced swaps among neighbouring centers: see local_search.hpp.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "local_search.hpp"

namespace quickmeans {

// What the removal of each center would add to the objective, by the scores of the last comparison.
void LocalSearch::price() {
    prices_.assign(std::size_t(n_centers_), 0);
    for (std::int64_t i = 0; i < n_; ++i)
        if (seconds_[i] >= 0)
            prices_[labels_[i]] += weights_[i] * (2 * (double(best_[i]) - double(next_[i])));
        else
            prices_[labels_[i]] = std::numeric_limits<double>::infinity();
}

SplitJob LocalSearch::split_job() {
    return {.rows = view(nullptr),
            .weights = weights_,
            .order = order_.data(),
            .starts = starts_.data(),
            .centers = centers_.data(),
            .cluster_weights = weights_in_.data(),
            .most = 0,
            .gains = gains_.data()};
}

// Find the gains of all clusters whose rows have changed.
void LocalSearch::split_all(const Poll& poll) {
    std::vector<std::int64_t> stale;
    for (std::int64_t k = 0; k < n_centers_; ++k)
        if (stale_[k]) stale.push_back(k);
    group(poll);
    std::vector<std::vector<float>> pairs(static_cast<std::size_t>(n_threads_),
                                          std::vector<float>(std::size_t(2 * n_columns_)));
    const auto pair_of = [&](std::int64_t, int thread) { return pairs[std::size_t(thread)].data(); };
    work_ += split_clusters(split_job(), stale, pair_of, set_, n_threads_, poll);
    std::fill(stale_.begin(), stale_.end(), 0);
}

// Rows whose center is gone go to their second nearest, or to a neighbour that has stayed.
void LocalSearch::leave(const std::vector<Swap>& swaps) {
    std::vector<char> removed(std::size_t(n_centers_), 0);
    for (const Swap& s : swaps) removed[s.removed] = 1;
    for (const Swap& s : swaps) {
        const std::int32_t* const near = groups_.near(s.removed);
        const std::int32_t* const end = near + groups_.n_near();
        const auto* const stayed = std::find_if(near, end, [&](std::int32_t k) { return !removed[k]; });
        const std::int32_t other = stayed == end ? std::int32_t(s.split) : *stayed;
        for (std::int64_t m = starts_[s.removed]; m < starts_[s.removed + 1]; ++m) {
            const std::int64_t row = order_[m];
            labels_[row] = seconds_[row] >= 0 && !removed[seconds_[row]] ? seconds_[row] : other;
            changed_[labels_[row]] = stale_[labels_[row]] = 1;
        }
    }
    is_grouped_ = false;
}

std::int64_t LocalSearch::swap(std::int64_t most, const Poll& poll) {
    if (!n_centers_ || history_.empty()) throw std::invalid_argument("iterate first");
    if (!is_compared_) iterate(1, 0, false, poll);  // after a way back
    price();
    split_all(poll);
    const Receivers receivers{order_.data(), starts_.data(), seconds_.data(), weights_, weights_in_.data()};
    const std::vector<Swap> swaps = choose_swaps(prices_, gains_, most, least_gain(objective_, scatter_), receivers);
    if (swaps.empty()) return 0;
    std::vector<std::int64_t> split;
    for (const Swap& s : swaps) split.push_back(s.split);
    std::vector<float> pairs(swaps.size() * 2 * std::size_t(n_columns_));
    const auto pair_of = [&](std::int64_t i, int) { return pairs.data() + i * 2 * n_columns_; };
    work_ += split_clusters(split_job(), split, pair_of, set_, n_threads_, poll);
    leave(swaps);
    std::vector<double> values(static_cast<std::size_t>(n_columns_));
    for (std::size_t i = 0; i < swaps.size(); ++i) {
        const float* const pair = pair_of(std::int64_t(i), 0);
        for (const std::int64_t k : {swaps[i].split, swaps[i].removed}) {
            const float* const from = k == swaps[i].split ? pair : pair + n_columns_;
            std::copy_n(from, n_columns_, values.begin());
            set_center(k, values.data());
            changed_[k] = stale_[k] = moved_[k] = 1;
        }
    }
    drift_ = std::numeric_limits<double>::infinity();
    return std::int64_t(swaps.size());
}

void LocalSearch::keep() { kept_ = {centers_, labels_, objective_}; }

void LocalSearch::go_back() {
    if (kept_.centers.empty()) throw std::invalid_argument("nothing was kept");
    centers_ = kept_.centers;
    labels_ = kept_.labels;
    objective_ = kept_.objective;
    std::fill(weights_in_.begin(), weights_in_.end(), 0);
    for (std::int64_t i = 0; i < n_; ++i) weights_in_[labels_[i]] += weights_[i];
    std::vector<double> values(static_cast<std::size_t>(n_columns_));
    for (std::int64_t k = 0; k < n_centers_; ++k) {
        std::copy_n(centers_.data() + k * n_columns_, n_columns_, values.begin());
        set_center(k, values.data());
    }
    for (auto* flags : {&changed_, &stale_, &moved_}) std::fill(flags->begin(), flags->end(), 1);
    is_grouped_ = is_compared_ = false;
    drift_ = std::numeric_limits<double>::infinity();
}

}  // namespace quickmeans
