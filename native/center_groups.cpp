#include "center_groups.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "dispatch.hpp"
#include "float_rows.hpp"
#include "grouping.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr double kGroups = 2;  // times the root of the number of centers
constexpr int kDivisions = 3;  // iterations of k-means among the centers: groups need not be good ones
constexpr int kPowerSteps = 2;
constexpr double kLarge = 2;                    // a group is large with more centers than so many times the mean
constexpr std::int64_t kCandidates = 1024;      // centers, at least, among which the neighbours of a center are found,
constexpr std::int64_t kMostCandidates = 4096;  // and at most, however uneven the groups
constexpr std::int64_t kChunkRows = 480;        // a whole number of tiles of any instruction set

std::size_t tile_memory(const InstructionSet& set, std::int64_t n_columns) {
    return std::size_t((n_columns + kStagingColumns) * set.single.nearest.lanes);
}

// Rows of one group.
struct Piece {
    std::int64_t group;
    Range rows;
};

// The rows of all groups in pieces for the threads.
std::vector<Piece> divide_rows(const std::vector<std::int64_t>& starts) {
    std::vector<Piece> pieces;
    for (std::size_t g = 0; g + 1 < starts.size(); ++g)
        for (std::int64_t first = starts[g]; first < starts[g + 1]; first += kChunkRows)
            pieces.push_back({std::int64_t(g), {first, std::min(kChunkRows, starts[g + 1] - first)}});
    return pieces;
}

// A direction in which these centers differ much: two steps of the power iteration from the way between two of them.
std::vector<double> leading_direction(const CentersView& centers, const std::int64_t* index, std::int64_t n) {
    const std::int64_t D = centers.n_columns;
    std::vector<double> mean(std::size_t(D), 0), direction(mean);
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t d = 0; d < D; ++d) mean[d] += centers.values[index[i] * D + d] / double(n);
    for (std::int64_t d = 0; d < D; ++d)
        direction[d] = centers.values[index[0] * D + d] - centers.values[index[n / 2] * D + d];
    for (int step = 0; step < kPowerSteps; ++step) {
        std::vector<double> sum(std::size_t(D), 0);
        for (std::int64_t i = 0; i < n; ++i) {
            const float* const center = centers.values + index[i] * D;
            double place = 0;
            for (std::int64_t d = 0; d < D; ++d) place += (center[d] - mean[d]) * direction[d];
            for (std::int64_t d = 0; d < D; ++d) sum[d] += place * (center[d] - mean[d]);
        }
        const double length = std::sqrt(std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0));
        if (!(length > 0)) break;  // the centers are equal, or any direction will do
        for (std::int64_t d = 0; d < D; ++d) direction[d] = sum[d] / length;
    }
    return direction;
}

using Scored = std::pair<float, std::int32_t>;

// The best of the scored centers in descending order; of equals the first.
void keep_best(std::vector<Scored>& scored, std::int64_t count) {
    const auto before = [](const Scored& a, const Scored& b) {
        return a.first > b.first || (a.first == b.first && a.second < b.second);
    };
    if (std::int64_t(scored.size()) > count) {
        std::nth_element(scored.begin(), scored.begin() + count, scored.end(), before);
        scored.resize(std::size_t(count));
    }
    std::sort(scored.begin(), scored.end(), before);
}

}  // namespace

// Give every center the nearest group.
void CenterGroups::choose(const CentersView& centers, const InstructionSet& set, int n_threads, const Poll& poll) {
    ListJob job{};
    job.rows = float_rows(centers.values, centers.n, n_columns_, nullptr);
    job.centers = values_.data();
    job.offset = offset_.data();
    all_.resize(std::size_t(n_groups_));
    std::iota(all_.begin(), all_.end(), 0);
    job.list = all_.data();
    job.n_listed = n_groups_;
    job.labels = group_of_.data();
    const double work = work_of_rows(centers.n, n_columns_, n_groups_);
    n_threads = threads_for(work, n_threads);
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        memory[thread].resize(tile_memory(set, n_columns_));
        const Range rows{c * kChunkRows, std::min(kChunkRows, centers.n - c * kChunkRows)};
        set.routines.nearest_listed(job, rows, memory[thread].data(), own_poll);
        return true;
    };
    for_each_chunk((centers.n + kChunkRows - 1) / kChunkRows, n_threads, chunk, poll);
    work_ += work;
}

// Move every group to the mean of its centers; a group without centers stays where it is.
void CenterGroups::set_means(const CentersView& centers) {
    std::vector<double> sums(std::size_t(n_groups_ * n_columns_), 0);
    std::vector<std::int64_t> sizes(std::size_t(n_groups_), 0);
    for (std::int64_t k = 0; k < centers.n; ++k) {
        double* const sum = sums.data() + group_of_[k] * n_columns_;
        for (std::int64_t d = 0; d < n_columns_; ++d) sum[d] += centers.values[k * n_columns_ + d];
        ++sizes[group_of_[k]];
    }
    for (std::int64_t g = 0; g < n_groups_; ++g) {
        if (!sizes[g]) continue;
        double square = 0;
        for (std::int64_t d = 0; d < n_columns_; ++d) {
            const double mean = sums[g * n_columns_ + d] / double(sizes[g]);
            values_[g * n_columns_ + d] = float(mean);
            square += mean * mean;
        }
        offset_[g] = float(-square / 2);
    }
}

// Cut a part of the order at its median along a leading direction, and so on, until no piece has more than `most`
// centers; append where the pieces begin. Where clusters have no order among them, one group draws nearly all centers,
// and the cost of all that goes through groups is that of the large ones.
void CenterGroups::cut(const CentersView& centers, const Range& part, std::int64_t most,
                       std::vector<std::int64_t>& begins) {
    if (part.count <= most) {
        begins.push_back(part.first);
        return;
    }
    const std::vector<double> direction = leading_direction(centers, order_.data() + part.first, part.count);
    std::vector<std::pair<double, std::int64_t>> places;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
        const float* const center = centers.values + order_[i] * n_columns_;
        places.emplace_back(std::inner_product(center, center + n_columns_, direction.begin(), 0.0), order_[i]);
    }
    const std::int64_t half = part.count / 2;
    std::nth_element(places.begin(), places.begin() + half, places.end());
    for (std::int64_t i = 0; i < part.count; ++i) order_[part.first + i] = places[std::size_t(i)].second;
    cut(centers, {part.first, half}, most, begins);
    cut(centers, {part.first + half, part.count - half}, most, begins);
}

// Cut large groups, and forget those without centers.
void CenterGroups::even_out(const CentersView& centers) {
    const auto most = std::int64_t(kLarge * std::sqrt(double(centers.n)) / kGroups) + 1;
    std::vector<std::int64_t> begins;
    for (std::int64_t g = 0; g < n_groups_; ++g)
        if (starts_[g] < starts_[g + 1]) cut(centers, {starts_[g], starts_[g + 1] - starts_[g]}, most, begins);
    n_groups_ = std::int64_t(begins.size());
    begins.push_back(centers.n);
    starts_.swap(begins);
    values_.resize(std::size_t(n_groups_ * n_columns_));
    offset_.resize(std::size_t(n_groups_));
    for (std::int64_t g = 0; g < n_groups_; ++g)
        for (std::int64_t i = starts_[g]; i < starts_[g + 1]; ++i) group_of_[order_[i]] = std::int32_t(g);
    set_means(centers);
}

void CenterGroups::divide(const CentersView& centers, bool anew, const InstructionSet& set, int n_threads,
                          const Poll& poll) {
    if (anew) {
        n_columns_ = centers.n_columns;
        n_groups_ = std::min(centers.n, std::int64_t(std::ceil(kGroups * std::sqrt(double(centers.n)))));
        values_.resize(std::size_t(n_groups_ * n_columns_));
        offset_.resize(std::size_t(n_groups_));
        group_of_.assign(std::size_t(centers.n), 0);
        starts_.resize(std::size_t(n_groups_ + 1));
        order_.resize(std::size_t(centers.n));
        for (std::int64_t g = 0; g < n_groups_; ++g) {
            const std::int64_t k = g * centers.n / n_groups_;
            std::copy_n(centers.values + k * n_columns_, n_columns_, values_.begin() + g * n_columns_);
            offset_[g] = centers.offset[k];
        }
    }
    for (int i = 0; i < (anew ? kDivisions : 1); ++i) {
        if (!anew || i) set_means(centers);
        choose(centers, set, n_threads, poll);
    }
    group_by_label(group_of_.data(), centers.n, n_groups_, order_.data(), starts_.data(), poll);
    even_out(centers);
    members_.assign(order_.begin(), order_.end());
    all_.resize(std::size_t(n_groups_));
    std::iota(all_.begin(), all_.end(), 0);
}

// The centers of this group and of those nearest to it, until there are enough; not too many, evenly spread.
std::vector<std::int32_t> CenterGroups::candidates(std::int64_t group) const {
    std::vector<Scored> near;
    const float* const own = values_.data() + group * n_columns_;
    for (const std::int32_t g : all_) {
        const float* const other = values_.data() + g * n_columns_;
        float score = offset_[g];
        for (std::int64_t d = 0; d < n_columns_; ++d) score += own[d] * other[d];
        near.emplace_back(g == group ? std::numeric_limits<float>::infinity() : score, g);
    }
    keep_best(near, std::int64_t(near.size()));
    std::vector<std::int32_t> list;
    for (std::size_t i = 0; i < near.size() && std::int64_t(list.size()) < kCandidates; ++i) {
        const std::int32_t g = near[i].second;
        list.insert(list.end(), members_.begin() + starts_[g], members_.begin() + starts_[g + 1]);
    }
    const auto size = std::int64_t(list.size());
    if (size <= kMostCandidates) return list;
    std::vector<std::int32_t> some;
    for (std::int64_t i = 0; i < kMostCandidates; ++i) some.push_back(list[i * size / kMostCandidates]);
    return some;
}

double CenterGroups::find_neighbours(const CentersView& centers, const InstructionSet& set, int n_threads,
                                     const Poll& poll) {
    n_near_ = std::min(kNear, centers.n);
    near_.resize(std::size_t(centers.n * n_near_));
    std::vector<double> nearest(all_.size(), 0), work(all_.size(), 0);
    n_threads = threads_for(work_of_rows(centers.n, n_columns_, std::min(kCandidates, centers.n)), n_threads);
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads)), scores(memory);
    const std::int64_t lanes = set.single.nearest.lanes;
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        const std::int64_t begin = starts_[c], count = starts_[c + 1] - begin;
        const std::vector<std::int32_t> list = candidates(c);
        const auto n_listed = std::int64_t(list.size());
        memory[thread].resize(tile_memory(set, n_columns_));
        scores[thread].resize(std::size_t(n_listed * lanes));
        ListJob job{};
        job.rows = float_rows(centers.values, centers.n, n_columns_, order_.data() + begin);
        job.centers = centers.values;
        job.offset = centers.offset;
        job.list = list.data();
        job.n_listed = n_listed;
        std::vector<Scored> scored;
        for (std::int64_t first = 0; first < count; first += lanes) {
            const Range rows{first, std::min(lanes, count - first)};
            set.routines.score_listed(job, rows, memory[thread].data(), scores[thread].data(), own_poll);
            for (std::int64_t i = 0; i < rows.count; ++i) {
                const std::int32_t own = members_[begin + first + i];
                scored.clear();
                for (std::int64_t l = 0; l < n_listed; ++l)
                    if (list[l] != own) scored.emplace_back(scores[thread][l * lanes + i], list[l]);
                keep_best(scored, n_near_ - 1);
                std::int32_t* const near = near_.data() + own * n_near_;
                near[0] = own;
                for (std::int64_t l = 1; l < n_near_; ++l)
                    near[l] = scored[std::min(l, std::int64_t(scored.size())) - 1].second;
                if (n_near_ > 1)
                    nearest[c] += std::max(0.0, -2 * (double(centers.offset[own]) + double(scored[0].first)));
            }
        }
        work[c] = work_of_rows(count, n_columns_, n_listed);
        return true;
    };
    for_each_chunk(n_groups_, n_threads, chunk, poll);
    work_ += std::accumulate(work.begin(), work.end(), 0.0);
    return std::accumulate(nearest.begin(), nearest.end(), 0.0);
}

// The nearest groups of n rows, `count` of them for each, nearest first: chosen[t * n + i].
void CenterGroups::choose_groups(const RowsView& rows, std::int64_t n, std::int64_t count,
                                 std::vector<std::int32_t>& chosen, const InstructionSet& set, int n_threads,
                                 const Poll& poll) const {
    const std::int64_t lanes = set.single.nearest.lanes;
    ListJob job{};
    job.rows = rows;
    job.centers = values_.data();
    job.offset = offset_.data();
    job.list = all_.data();
    job.n_listed = n_groups_;
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads)), scores(memory);
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        memory[thread].resize(tile_memory(set, n_columns_));
        scores[thread].resize(std::size_t(n_groups_ * lanes));
        std::vector<Scored> best;
        for (std::int64_t first = c * kChunkRows; first < std::min(n, (c + 1) * kChunkRows); first += lanes) {
            const Range part{first, std::min({lanes, n - first, (c + 1) * kChunkRows - first})};
            set.routines.score_listed(job, part, memory[thread].data(), scores[thread].data(), own_poll);
            for (std::int64_t i = 0; i < part.count; ++i) {
                best.clear();
                for (std::int64_t g = 0; g < n_groups_; ++g) {
                    const float score = scores[thread][g * lanes + i];
                    if (std::int64_t(best.size()) == count && !(score > best.back().first)) continue;
                    if (std::int64_t(best.size()) == count) best.pop_back();
                    auto at = best.end();
                    while (at != best.begin() && score > std::prev(at)->first) --at;
                    best.insert(at, {score, std::int32_t(g)});
                }
                for (std::int64_t t = 0; t < count; ++t) chosen[std::size_t(t * n + first + i)] = best[t].second;
            }
        }
        return true;
    };
    for_each_chunk((n + kChunkRows - 1) / kChunkRows, n_threads, chunk, poll);
}

void CenterGroups::label(const ListJob& results, std::int64_t n, std::int64_t n_chosen, const CentersView& centers,
                         const InstructionSet& set, int n_threads, const Poll& poll) {
    const std::int64_t count = std::min(n_chosen, n_groups_);
    const double work = work_of_rows(n, n_columns_, n_groups_ + count * centers.n / n_groups_);
    n_threads = threads_for(work, n_threads);
    std::vector<std::int32_t> chosen(static_cast<std::size_t>(n * count));
    choose_groups(results.rows, n, count, chosen, set, n_threads, poll);
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads));
    std::vector<std::int64_t> order(static_cast<std::size_t>(n)), starts(std::size_t(n_groups_ + 1));
    for (std::int64_t t = 0; t < count; ++t) {
        group_by_label(chosen.data() + t * n, n, n_groups_, order.data(), starts.data(), poll);
        if (results.rows.index)
            for (std::int64_t& place : order) place = results.rows.index[place];
        const std::vector<Piece> pieces = divide_rows(starts);
        const auto by_center = [&](std::int64_t c, int thread, const Poll& own_poll) {
            const auto& [g, part] = pieces[std::size_t(c)];
            memory[thread].resize(tile_memory(set, n_columns_));
            ListJob job = results;
            job.rows.index = order.data();
            job.centers = centers.values;
            job.offset = centers.offset;
            job.list = members_.data() + starts_[g];
            job.n_listed = starts_[g + 1] - starts_[g];
            job.more = t > 0;
            set.routines.nearest_listed(job, part, memory[thread].data(), own_poll);
            return true;
        };
        for_each_chunk(std::int64_t(pieces.size()), n_threads, by_center, poll);
    }
    work_ += work;
}

}  // namespace quickmeans
