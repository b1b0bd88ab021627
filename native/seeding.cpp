#include "seeding.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "parallel.hpp"

namespace quickmeans {
namespace {

// Multiply-adds of one draw that are worth a thread: about 0.1 milliseconds.
constexpr double kWorkPerThread = 2e6;
// Gaps are lowered by this share of the squared norms in them: some dozen roundings in float32.
constexpr float kRounding = 2e-6f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Seeding {
  public:
    Seeding(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, std::int64_t n_centers,
            const InstructionSet& set, int n_threads, const Poll& poll)
        : rows_(rows),
          n_(n),
          D_(n_columns),
          weights_(weights),
          n_blocks_((n + kSeedBlock - 1) / kSeedBlock),
          set_(set),
          n_threads_(n_threads),
          poll_(poll),
          closest_(std::size_t(n), kInfinity),
          distances_(std::size_t(n * kTrials)),
          gaps_(std::size_t(n_centers)),
          scores_(std::size_t(n_centers * kTrials)),
          panel_(std::size_t(kPanel * n_columns)),
          offset_(std::size_t(kPanel)),
          candidate_norms_(std::size_t(kTrials)),
          norms_(std::size_t(n)),
          owners_(std::size_t(n), 0),
          sums_(std::size_t(n_blocks_ * kTrials)),
          block_sums_(std::size_t(n_blocks_)) {
        std::vector<double> squares(static_cast<std::size_t>(n));
        set.routines.square_rows(rows, n_columns, {0, n}, squares.data(), poll);
        std::copy(squares.begin(), squares.end(), norms_.begin());
    }

    // The best of these candidates as a further center. Returns the sum of weights times squared distances after it.
    double add(const std::vector<std::int64_t>& candidates, std::vector<std::int64_t>& chosen) {
        const std::int64_t T = std::int64_t(candidates.size());
        const PanelJob panel = packed(candidates, chosen.data());
        measure(panel, candidates, chosen);
        const SeedJob job{.panel = panel,
                          .n_rows = n_,
                          .weights = weights_,
                          .norms = norms_.data(),
                          .closest = closest_.data(),
                          .owners = owners_.data(),
                          .gaps = gaps_.data(),
                          .candidates = candidates.data(),
                          .candidate_norms = candidate_norms_.data(),
                          .n_blocks = n_blocks_,
                          .distances = distances_.data(),
                          .sums = sums_.data()};
        const auto block = [&](std::int64_t b, int, const Poll& own_poll) {
            set_.routines.seed_block(job, b, own_poll);
            return true;
        };
        const int most = int(double(n_) * double(kTrials * D_) / kWorkPerThread);
        for_each_chunk(n_blocks_, std::clamp(most, 1, n_threads_), block, poll_);
        std::int64_t best = -1;
        double total = 0;
        for (std::int64_t t = 0; t < T; ++t) {
            double sum = 0;
            for (std::int64_t b = 0; b < n_blocks_; ++b) sum += sums_[b * kTrials + t];
            if (best < 0 || sum < total) best = t, total = sum;
        }
        for (std::int64_t i = 0; i < n_; ++i)
            if (distances_[i * kTrials + best] < closest_[i])
                closest_[i] = distances_[i * kTrials + best], owners_[i] = std::int32_t(chosen.size());
        chosen.push_back(candidates[best]);
        for (std::int64_t b = 0; b < n_blocks_; ++b) block_sums_[b] = sums_[b * kTrials + best];
        return total;
    }

    // The row at which the running sum of weight times distance passes `goal`; not one at distance zero if there is
    // another.
    std::int64_t draw(double goal) const {
        std::int64_t block = 0, last = -1;
        for (; block + 1 < n_blocks_ && goal >= block_sums_[block]; ++block) goal -= block_sums_[block];
        const auto mass = [&](std::int64_t i) { return weights_[i] * double(closest_[i]); };
        for (std::int64_t i = block * kSeedBlock; i < n_; ++i) {
            if (!(mass(i) > 0)) continue;
            last = i;
            goal -= mass(i);
            if (goal < 0) return i;
        }
        for (std::int64_t i = 0; last < 0 && i < n_; ++i)
            if (mass(i) > 0) last = i;
        return last;
    }

  private:
    // The candidates as a panel.
    PanelJob packed(const std::vector<std::int64_t>& candidates, const std::int64_t* index) {
        std::fill(panel_.begin(), panel_.end(), 0.f);
        std::fill(offset_.begin(), offset_.end(), -kInfinity);
        std::fill(candidate_norms_.begin(), candidate_norms_.end(), 0.f);
        for (std::size_t t = 0; t < candidates.size(); ++t) {
            for (std::int64_t d = 0; d < D_; ++d) panel_[std::size_t(d * kPanel) + t] = rows_[candidates[t] * D_ + d];
            candidate_norms_[t] = norms_[candidates[t]];
            offset_[t] = -norms_[candidates[t]] / 2;
        }
        PanelJob job{};
        job.rows = rows_;
        job.n_columns = D_;
        job.index = index;
        job.panels = panel_.data();
        job.offset = offset_.data();
        job.n_centers = std::int64_t(candidates.size());
        return job;
    }

    // Lower bounds on the squared distances from the centers to the nearest of the candidates.
    void measure(const PanelJob& panel, const std::vector<std::int64_t>& candidates,
                 const std::vector<std::int64_t>& chosen) {
        const std::int64_t k = std::int64_t(chosen.size()), T = panel.n_centers;
        set_.routines.all_scores(panel, {0, k}, scores_.data(), poll_);
        for (std::int64_t c = 0; c < k; ++c) {
            gaps_[c] = kInfinity;
            for (std::int64_t t = 0; t < T; ++t) {
                const float size = norms_[chosen[c]] + norms_[candidates[t]];
                gaps_[c] = std::min(gaps_[c], norms_[chosen[c]] - 2 * scores_[c * T + t] - kRounding * size);
            }
        }
    }

    const float* rows_;
    std::int64_t n_, D_;
    const double* weights_;
    std::int64_t n_blocks_;
    const InstructionSet& set_;
    int n_threads_;
    const Poll& poll_;
    std::vector<float> closest_, distances_, gaps_, scores_, panel_, offset_, candidate_norms_, norms_;
    std::vector<std::int32_t> owners_;
    std::vector<double> sums_, block_sums_;
};

}  // namespace

std::int64_t seed(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, std::int64_t first,
                  const double* uniforms, std::int64_t n_centers, std::int64_t n_trials, std::int64_t* chosen,
                  const InstructionSet& set, int n_threads, const Poll& poll) {
    Seeding seeding(rows, n, n_columns, weights, n_centers, set, n_threads, poll);
    return draw_centers(seeding, first, uniforms, n_centers, n_trials, chosen);
}

}  // namespace quickmeans
