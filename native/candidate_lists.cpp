#include "candidate_lists.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "float_rows.hpp"
#include "grouping.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kFew = 256;  // so many centers are all compared: finding neighbours costs more than it saves
constexpr std::int64_t kChunkClusters = 4;  // clusters whose rows a thread compares at a time

// The largest scores of some rows, m each, in descending order, and their places in the list.
class Largest {
  public:
    Largest(std::int64_t m, std::int64_t lanes)
        : m_(m), scores_(std::size_t(m * lanes)), places_(scores_.size()), count_(std::size_t(lanes)) {}

    void clear() { std::fill(count_.begin(), count_.end(), 0); }

    void offer(std::int64_t lane, float score, std::int32_t place) {
        float* const scores = scores_.data() + lane * m_;
        std::int64_t at = count_[lane];
        if (at == m_ && !(score > scores[m_ - 1])) return;
        std::int32_t* const places = places_.data() + lane * m_;
        if (at < m_)
            ++count_[lane];
        else
            --at;
        for (; at > 0 && score > scores[at - 1]; --at) scores[at] = scores[at - 1], places[at] = places[at - 1];
        scores[at] = score, places[at] = place;
    }

    std::int64_t count(std::int64_t lane) const { return count_[lane]; }
    float score(std::int64_t lane, std::int64_t i) const { return scores_[lane * m_ + i]; }
    std::int32_t place(std::int64_t lane, std::int64_t i) const { return places_[lane * m_ + i]; }

  private:
    std::int64_t m_;
    std::vector<float> scores_;
    std::vector<std::int32_t> places_;
    std::vector<std::int64_t> count_;
};

// The squared length of a row.
double squared_length(const float* x, std::int64_t n) {
    double sum = 0;
    for (std::int64_t d = 0; d < n; ++d) sum += double(x[d]) * x[d];
    return sum;
}

}  // namespace

CandidateLists::CandidateLists(const float* centers, std::int64_t n, std::int64_t n_columns, int n_threads,
                               const InstructionSet& set, const Poll& poll)
    : n_(n),
      n_columns_(n_columns),
      n_threads_(n_threads),
      set_(set),
      centers_(centers, centers + n * n_columns),
      offset_(std::size_t(n)) {
    for (std::int64_t k = 0; k < n; ++k) {
        const float* const center = centers_.data() + k * n_columns;
        double square = 0;
        for (std::int64_t d = 0; d < n_columns; ++d) square += double(center[d]) * center[d];
        offset_[k] = float(-square / 2);
    }
    if (n <= kFew) {
        all_.resize(std::size_t(n));
        std::iota(all_.begin(), all_.end(), 0);
        return;
    }
    const CentersView view{centers_.data(), offset_.data(), n, n_columns};
    groups_.divide(view, true, set, n_threads, poll);
    groups_.find_neighbours(view, set, n_threads, poll);
}

void CandidateLists::list(const float* rows, std::int64_t n, const std::int32_t* labels, std::int64_t m,
                          std::int32_t* candidates, float* squares, const Poll& poll) const {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n)), starts(static_cast<std::size_t>(n_) + 1);
    group_by_label(labels, n, n_, order.data(), starts.data(), poll);
    const std::int64_t lanes = set_.single.nearest.lanes;
    const std::int64_t n_listed = all_.empty() ? groups_.n_near() : n_;
    const int n_threads = threads_for(work_of_rows(n, n_columns_, n_listed), n_threads_);
    std::vector<std::vector<float>> memory(static_cast<std::size_t>(n_threads)), scores(memory);
    std::vector<Largest> largest(static_cast<std::size_t>(n_threads), Largest(m, lanes));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        memory[thread].resize(std::size_t((n_columns_ + kStagingColumns) * lanes));
        scores[thread].resize(std::size_t(n_listed * lanes));
        Largest& best = largest[std::size_t(thread)];
        ListJob job{};
        job.rows = float_rows(rows, n, n_columns_, order.data());
        job.centers = centers_.data();
        job.offset = offset_.data();
        job.n_listed = n_listed;
        for (std::int64_t k = c * kChunkClusters; k < std::min(n_, (c + 1) * kChunkClusters); ++k) {
            job.list = all_.empty() ? groups_.near(k) : all_.data();
            for (std::int64_t first = starts[k]; first < starts[k + 1]; first += lanes) {
                const Range range{first, std::min(lanes, starts[k + 1] - first)};
                const float* const found = scores[thread].data();
                set_.routines.score_listed(job, range, memory[thread].data(), scores[thread].data(), own_poll);
                best.clear();
                for (std::int64_t l = 0; l < n_listed; ++l) {
                    if (l && job.list[l] == job.list[l - 1]) continue;  // short lists repeat their last center
                    for (std::int64_t i = 0; i < range.count; ++i) best.offer(i, found[l * lanes + i], std::int32_t(l));
                }
                for (std::int64_t i = 0; i < range.count; ++i) {
                    const std::int64_t row = order[first + i], count = best.count(i);
                    const double norm = squared_length(rows + row * n_columns_, n_columns_);
                    std::int32_t* const to = candidates + row * m;
                    float* const square = squares + row * m;
                    for (std::int64_t j = 0; j < m; ++j) {
                        to[j] = j < count ? job.list[best.place(i, j)] : -1;
                        square[j] = j < count ? float(std::max(norm - 2 * double(best.score(i, j)), 0.0))
                                              : std::numeric_limits<float>::infinity();
                    }
                }
            }
        }
        return true;
    };
    for_each_chunk((n_ + kChunkClusters - 1) / kChunkClusters, n_threads, chunk, poll);
}

}  // namespace quickmeans
