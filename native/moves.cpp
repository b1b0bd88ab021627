#include "moves.hpp"

#include <algorithm>
#include <numeric>

#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

// A center that would get this share of a removed cluster's weight is not removed in the same round.
constexpr double kReceiverShare = 0.1;
// A split looks at so many rows of a cluster, at least and at most, and in between at what fills a 256 KB cache: the
// gain of 512 rows, times their share, is that of all rows to a few percent.
constexpr std::int64_t kSplitRows = 128, kMostSplitRows = 512, kSplitEntries = 1 << 16;
constexpr double kSplitWork = 24;    // multiply-adds for every entry of such a row
constexpr double kLeastGain = 1e-9;  // of the objective
constexpr double kRounding = 1e-12;  // of the scatter: squares of 1e-7, and more

// What the split of a cluster needs: at most `most` rows, filled up to a vector, three numbers for each, and a few
// more.
constexpr std::int64_t split_scratch(std::int64_t most, std::int64_t n_columns) {
    return (most + 16) * (n_columns + 3) + 16 * 64 + 3 * n_columns;
}

}  // namespace

double least_gain(double objective, double scatter) { return kLeastGain * objective + kRounding * scatter; }

double split_clusters(const SplitJob& job, const std::vector<std::int64_t>& clusters,
                      const std::function<float*(std::int64_t i, int thread)>& pair_of, const InstructionSet& set,
                      int n_threads, const Poll& poll) {
    const std::int64_t D = job.rows.n_columns, most = std::clamp(kSplitEntries / D, kSplitRows, kMostSplitRows);
    SplitJob limited = job;
    limited.most = most;
    double seen = 0;
    std::int64_t largest = 0;
    for (const std::int64_t k : clusters) {
        const std::int64_t size = std::min(most, job.starts[k + 1] - job.starts[k]);
        seen += double(size);
        largest = std::max(largest, size);
    }
    const double work = seen * (kSplitWork * double(D) + kWorkPerRow);
    n_threads = threads_for(work, n_threads);
    std::vector<std::vector<float>> scratch(static_cast<std::size_t>(n_threads));
    std::vector<std::vector<std::int64_t>> index(static_cast<std::size_t>(n_threads));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        scratch[thread].resize(std::size_t(split_scratch(largest, D)));
        index[thread].resize(std::size_t(largest));
        set.routines.split(limited, clusters[c], pair_of(c, thread), scratch[thread].data(), index[thread].data(),
                           own_poll);
        return true;
    };
    for_each_chunk(std::int64_t(clusters.size()), n_threads, chunk, poll);
    return work;
}

void Receivers::freeze(std::int64_t cluster, std::vector<char>& frozen, std::vector<double>& received) const {
    for (std::int64_t m = starts[cluster]; m < starts[cluster + 1]; ++m)
        if (seconds[order[m]] >= 0) received[seconds[order[m]]] += weights[order[m]];
    for (std::int64_t m = starts[cluster]; m < starts[cluster + 1]; ++m) {
        const std::int32_t k = seconds[order[m]];
        if (k < 0) continue;
        if (received[k] > kReceiverShare * cluster_weights[cluster]) frozen[k] = 1;
        received[k] = 0;
    }
}

std::vector<std::int64_t> ascending(const std::vector<double>& values) {
    std::vector<std::int64_t> places(values.size());
    std::iota(places.begin(), places.end(), 0);
    std::stable_sort(places.begin(), places.end(), [&](auto a, auto b) { return values[a] < values[b]; });
    return places;
}

std::vector<Swap> choose_swaps(const std::vector<double>& prices, const std::vector<double>& gains, std::int64_t most,
                               double least, const Receivers& receivers) {
    const auto K = std::int64_t(prices.size());
    std::vector<double> losses(gains);
    for (double& loss : losses) loss = -loss;
    const std::vector<std::int64_t> cheap = ascending(prices), wide = ascending(losses);
    std::vector<char> frozen(prices.size(), 0), touched(prices.size(), 0);
    std::vector<double> received(prices.size(), 0);
    std::vector<Swap> swaps;
    std::int64_t next = 0;
    for (const std::int64_t cluster : wide) {
        if (std::int64_t(swaps.size()) == most) break;
        if (touched[cluster]) continue;
        while (next < K && (frozen[cheap[next]] || touched[cheap[next]])) ++next;
        std::int64_t at = next;
        while (at < K && (cheap[at] == cluster || frozen[cheap[at]] || touched[cheap[at]])) ++at;
        if (at == K) break;
        const std::int64_t removed = cheap[at];
        if (!(gains[cluster] - prices[removed] > least)) break;
        receivers.freeze(removed, frozen, received);
        touched[cluster] = touched[removed] = 1;
        swaps.push_back({cluster, removed});
    }
    return swaps;
}

}  // namespace quickmeans
