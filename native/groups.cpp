#include "groups.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "grouping.hpp"
#include "nearest.hpp"
#include "parallel.hpp"
#include "screen.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

// Rows that are sorted by their first groups at a time. With 64 coordinates their points take 16 MB; fewer rows find
// the centers of the row before less often in the cache.
constexpr std::int64_t kBlockRows = 1 << 16;
constexpr std::int64_t kTilesPerChunk = 16;
// Coordinates that say which group a row looks into first: it need not be the nearest one.
constexpr std::int64_t kFirst = 16;

std::int64_t whole_panels(std::int64_t n) { return (n + kPanel - 1) / kPanel * kPanel; }

// The memory of one thread, which is taken when it first has a chunk.
template <class T>
struct Memory {
    std::vector<T> tile, point_tile, window, group_scores, line, scores;
    std::vector<std::uint64_t> chosen;
    std::vector<std::int32_t> rows, labels;
    std::vector<GroupSearch<T>> search;
    std::vector<GroupScore<T>, RawPages<GroupScore<T>>> later;
    GroupCounts counts;

    void take(const GroupJob<T>& job, int lanes) {
        if (!tile.empty()) return;
        tile.resize(std::size_t((job.rows.n_columns + kStagingColumns) * lanes));
        point_tile.resize(std::size_t(job.n_coordinates * lanes));
        window.resize(std::size_t(kGroupWindow));
        group_scores.resize(std::size_t(kMostPointRows * whole_panels(job.groups.n_points)));
        line.resize(std::size_t(job.rows.n_columns));
        scores.resize(std::size_t(kGroupRows * kGroupListed));
        chosen.resize(std::size_t(job.groups.n_points * kGroupWords));
        rows.resize(std::size_t(kGroupRows));
        labels.resize(std::size_t(kGroupRows * kGroupListed));
        search.resize(std::size_t(kGroupRows));
        if (!job.known) later.resize(std::size_t(kGroupRows * job.groups.n_points));
    }
    GroupMemory<T> view(const Poll& poll) {
        return {tile.data(),
                point_tile.data(),
                window.data(),
                group_scores.data(),
                line.data(),
                chosen.data(),
                rows.data(),
                search.data(),
                later.data(),
                scores.data(),
                labels.data(),
                0,
                0,
                0,
                0,
                poll};
    }
    void add(const GroupMemory<T>& used) {
        counts.n_compared += used.n_compared;
        counts.n_listed += used.n_listed;
        counts.n_settled += used.n_settled;
    }
};

// The loop over the rows of one call.
template <class T>
class Run {
  public:
    Run(const GroupJob<T>& job, const InstructionSet& set, int n_threads, const Poll& poll)
        : job_(job), kernels_(kernels_of<T>(set)), n_threads_(n_threads), poll_(poll) {
        const auto n = std::size_t(std::min(kBlockRows, job.rows.n_rows));
        points_.resize(n * std::size_t(job.n_coordinates));
        group_.resize(n);
        order_.resize(n);
        starts_.resize(std::size_t(job.groups.n_points + 1));
        memory_.resize(std::size_t(n_threads));
    }

    // The rows of a block; -1, or the first row of a bad chunk.
    std::int64_t block(const Range& rows) {
        const GroupBlock<T> block{rows.first, points_.data(), group_.data(), order_.data()};
        const std::int64_t bad = place(block, rows);
        if (bad >= 0) return bad;
        group_by_label(group_.data(), rows.count, job_.groups.n_points, order_.data(), starts_.data(), poll_);
        const std::int64_t n_chunks = (rows.count + kGroupRows - 1) / kGroupRows;
        const auto chunk = [&](std::int64_t c, int thread, const Poll& poll) {
            with_memory(thread, poll, [&](GroupMemory<T>& memory) {
                const std::int64_t first = c * kGroupRows;
                kernels_.groups.search(job_, block, {first, std::min(kGroupRows, rows.count - first)}, memory);
            });
            return true;
        };
        for_each_chunk(n_chunks, n_threads_, chunk, poll_);
        return -1;
    }

    void count(GroupCounts& counts) const {
        for (const Memory<T>& memory : memory_) {
            counts.n_compared += memory.counts.n_compared;
            counts.n_listed += memory.counts.n_listed;
            counts.n_settled += memory.counts.n_settled;
        }
    }

  private:
    template <class Function>
    void with_memory(int thread, const Poll& poll, const Function& function) {
        Memory<T>& own = memory_[std::size_t(thread)];
        own.take(job_, kernels_.nearest.lanes);
        GroupMemory<T> memory = own.view(poll);
        function(memory);
        own.add(memory);
    }

    std::int64_t place(const GroupBlock<T>& block, const Range& rows) {
        const std::int64_t size = kTilesPerChunk * kernels_.nearest.lanes, n_chunks = (rows.count + size - 1) / size;
        const std::int64_t none = rows.first + rows.count;
        std::atomic<std::int64_t> bad{none};
        const auto chunk = [&](std::int64_t c, int thread, const Poll& poll) {
            const Range part{rows.first + c * size, std::min(size, rows.count - c * size)};
            bool fine = false;
            with_memory(thread, poll,
                        [&](GroupMemory<T>& memory) { fine = kernels_.groups.place(job_, block, part, memory); });
            std::int64_t seen = bad.load();
            while (!fine && part.first < seen && !bad.compare_exchange_weak(seen, part.first)) {
            }
            return fine;
        };
        for_each_chunk(n_chunks, n_threads_, chunk, poll_);
        return bad.load() < none ? bad.load() : -1;
    }

    const GroupJob<T>& job_;
    const Kernels<T>& kernels_;
    int n_threads_;
    const Poll& poll_;
    std::vector<T, RawPages<T>> points_;
    std::vector<std::int32_t> group_;
    std::vector<std::int64_t> order_, starts_;
    std::vector<Memory<T>> memory_;
};

}  // namespace

template <class T>
Groups<T>::Groups(const Source& source, const InstructionSet& set, const Poll& poll)
    : set_(set),
      n_centers_(source.n_centers),
      n_columns_(source.n_columns),
      n_coordinates_(source.n_directions + 1),
      n_directions_(source.n_directions),
      n_narrow_(source.n_narrow),
      n_groups_(source.n_groups),
      spherical_(source.spherical),
      centers_(source.centers),
      mean_(source.mean, source.mean + source.n_columns),
      center_offset_(source.center_offset, source.center_offset + source.n_centers) {
    const std::int64_t K = n_centers_, D = n_columns_;
    const double growth = largest_growth(source.centers, K, D), longest = growth / std::sqrt(double(D));
    double mean_square = 0;
    for (std::int64_t j = 0; j < D; ++j) mean_square += source.mean[j] * source.mean[j];
    scale_ = T(longest * longest + std::sqrt(mean_square) * longest);
    limit_ = comparable_limit<T>(growth, largest_size(source.center_offset, std::size_t(K)), D);
    const auto offset_of = [&](std::int64_t k) {
        double sum = 0;
        for (std::int64_t j = 0; j < D; ++j) sum -= source.mean[j] * double(source.directions[k * D + j]);
        return sum;
    };
    pack_panels(source.directions, n_directions_, D, offset_of, directions_, direction_offset_);
    sort(source, poll);
    find_middles(source);
}

// The points by group, each group in panels of its own.
template <class T>
void Groups<T>::sort(const Source& source, const Poll& poll) {
    const std::int64_t C = n_coordinates_;
    std::vector<std::int64_t> order(static_cast<std::size_t>(n_centers_)), first(std::size_t(n_groups_ + 1));
    group_by_label(source.labels, n_centers_, n_groups_, order.data(), first.data(), poll);
    starts_.assign(1, 0);
    for (std::int64_t g = 0; g < n_groups_; ++g)
        starts_.push_back(starts_.back() + whole_panels(first[std::size_t(g + 1)] - first[std::size_t(g)]));
    const auto n = std::size_t(starts_.back());
    points_.assign(n * std::size_t(C), T(0));
    point_offset_.assign(n, -std::numeric_limits<T>::infinity());
    slack_.assign(n, T(0));
    members_.assign(n, -1);
    gain_.assign(std::size_t(n_centers_), T(0));
    for (std::int64_t g = 0; g < n_groups_; ++g)
        for (std::int64_t i = first[std::size_t(g)]; i < first[std::size_t(g + 1)]; ++i) {
            const std::int64_t at = starts_[std::size_t(g)] + i - first[std::size_t(g)], k = order[std::size_t(i)];
            const T* const point = source.points + k * C;
            double square = 0;
            for (std::int64_t d = 0; d < C; ++d) {
                points_[std::size_t((at / kPanel * C + d) * kPanel + at % kPanel)] = point[d];
                square += double(point[d]) * double(point[d]);
            }
            point_offset_[std::size_t(at)] = T(-square / 2);
            slack_[std::size_t(at)] = point[C - 1];
            members_[std::size_t(at)] = std::int32_t(k);
            double whole = 0;
            for (std::int64_t j = 0; j < n_columns_; ++j)
                whole += double(source.centers[k * n_columns_ + j]) * double(source.centers[k * n_columns_ + j]);
            gain_[std::size_t(k)] = T(std::max(whole - square, 0.0) / 2);
            largest_gain_ = std::max(largest_gain_, gain_[std::size_t(k)]);
        }
}

// The means of the first coordinates of the points of the groups, and how far their members are away.
template <class T>
void Groups<T>::find_middles(const Source& source) {
    const auto C = std::size_t(n_coordinates_), r = std::size_t(n_narrow_), G = std::size_t(n_groups_);
    std::vector<double> sums(G * r, 0.0), sizes(G, 0.0), squares(G, 0.0);
    for (std::size_t k = 0; k < std::size_t(n_centers_); ++k) {
        const auto g = std::size_t(source.labels[k]);
        for (std::size_t d = 0; d < r; ++d) sums[g * r + d] += double(source.points[k * C + d]);
        ++sizes[g];
    }
    std::vector<T> middles(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) middles[i] = T(sums[i] / std::max(sizes[i / r], 1.0));
    const auto offset_of = [&](std::int64_t g) {
        double square = 0;
        for (std::size_t d = 0; d < r; ++d) square += std::pow(double(middles[std::size_t(g) * r + d]), 2);
        return -square / 2;
    };
    pack_panels(middles.data(), n_groups_, n_narrow_, offset_of, groups_, group_offset_);
    pack_first(middles.data());
    for (std::size_t k = 0; k < std::size_t(n_centers_); ++k) {
        double square = 0;
        const auto g = std::size_t(source.labels[k]);
        for (std::size_t d = 0; d < r; ++d)
            square += std::pow(double(source.points[k * C + d]) - double(middles[g * r + d]), 2);
        squares[g] = std::max(squares[g], square);
        mean_square_ += square / double(n_centers_);
    }
    radii_.assign(std::size_t(whole_panels(n_groups_)), T(0));
    for (std::size_t g = 0; g < G; ++g) radii_[g] = T(std::sqrt(squares[g]));
}

// The first few coordinates of the middles, by which rows choose their first groups.
template <class T>
void Groups<T>::pack_first(const T* middles) {
    const std::int64_t n = std::min(kFirst, n_narrow_);
    std::vector<T> firsts(std::size_t(n_groups_ * n));
    for (std::int64_t g = 0; g < n_groups_; ++g) std::copy_n(middles + g * n_narrow_, n, firsts.data() + g * n);
    const auto offset_of = [&](std::int64_t g) {
        double square = 0;
        for (std::int64_t d = 0; d < n; ++d) square += std::pow(double(firsts[std::size_t(g * n + d)]), 2);
        return -square / 2;
    };
    pack_panels(firsts.data(), n_groups_, n, offset_of, first_groups_, first_offset_);
}

template <class T>
GroupJob<T> Groups<T>::job() const {
    GroupJob<T> job{};
    job.mean = mean_.data();
    job.centers = centers_;
    job.center_offset = center_offset_.data();
    job.n_coordinates = n_coordinates_;
    job.n_narrow = n_narrow_;
    job.directions = {n_directions_, directions_.data(), direction_offset_.data()};
    job.groups = {n_groups_, groups_.data(), group_offset_.data()};
    job.n_first = std::min(kFirst, n_narrow_);
    job.first_groups = {n_groups_, first_groups_.data(), first_offset_.data()};
    job.radii = radii_.data();
    job.starts = starts_.data();
    job.points = {starts_.back(), points_.data(), point_offset_.data()};
    job.slack = slack_.data();
    job.members = members_.data();
    job.gain = gain_.data();
    job.largest_gain = largest_gain_;
    job.spherical = spherical_;
    job.limit = limit_;
    // Twice the root of the number of roundings, and some.
    job.rounding = std::numeric_limits<T>::epsilon() / 2 * T(16 + 2 * std::sqrt(double(n_columns_)));
    job.scale = scale_;
    return job;
}

template <class T>
std::int64_t Groups<T>::run(const GroupJob<T>& job, int n_threads, GroupCounts& counts, const Poll& poll) const {
    const std::int64_t n = job.rows.n_rows;
    // About a tenth of the centers are looked at.
    n_threads = threads_for(work_of_rows(n, n_coordinates_, n_columns_ + n_groups_ + n_centers_ / 10), n_threads);
    Run<T> all(job, set_, n_threads, poll);
    for (std::int64_t first = 0; first < n; first += kBlockRows) {
        const std::int64_t bad = all.block({first, std::min(kBlockRows, n - first)});
        if (bad >= 0) return bad;
    }
    all.count(counts);
    return -1;
}

template class Groups<float>;
template class Groups<double>;

}  // namespace quickmeans
