// k-means++ among rows in CSR form: candidates are scattered into a table, and one pass measures all of them.
#include <algorithm>

#include "csr.hpp"
#include "parallel.hpp"
#include "seeding.hpp"

namespace quickmeans {
namespace {

constexpr double kEqual = 1e-12;  // rows whose squared distance is a smaller share of their squares are equal

class Seeding {
  public:
    Seeding(const CsrView& rows, const std::int64_t* index, std::int64_t n, const double* weights,
            std::int64_t n_trials, const InstructionSet& set, int n_threads, const Poll& poll)
        : rows_(rows),
          index_(index),
          n_(n),
          weights_(weights),
          n_blocks_((n + kSeedBlock - 1) / kSeedBlock),
          poll_(poll),
          table_(n_trials, rows.n_columns, set),
          norms_(std::size_t(n)),
          closest_(std::size_t(n), std::numeric_limits<double>::infinity()),
          distances_(std::size_t(n * n_trials)) {
        with_entries(rows_, [&](const auto& x) {
            double work = 0;
            for (std::int64_t i = 0; i < n_; ++i) {
                const std::int64_t row = index_[i];
                double sum = 0;
                for (std::int64_t j = x.begin(row); j < x.end(row); ++j) sum += double(x.values[j]) * x.values[j];
                norms_[i] = sum;
                work += double(x.end(row) - x.begin(row));
            }
            n_threads_ = csr_threads(2 * work, n_threads);
        });
        std::fill_n(table_.offset(), n_trials, 0.0);
    }

    // The best of these candidates as a further center. Returns the sum of weights times squared distances after it.
    double add(const std::vector<std::int64_t>& candidates, std::vector<std::int64_t>& chosen) {
        const std::int64_t T = std::int64_t(candidates.size());
        std::vector<double> sums(std::size_t(n_blocks_ * T), 0);
        scatter(candidates, 1);
        const CsrTable<double> table = table_.table();
        std::vector<std::vector<double>> scratch(static_cast<std::size_t>(n_threads_));
        const auto block = [&](std::int64_t b, int thread, const Poll& own_poll) {
            const Range range{b * kSeedBlock, std::min(kSeedBlock, n_ - b * kSeedBlock)};
            std::vector<double>& scores = scratch[thread];
            scores.resize(std::size_t(kSeedBlock * table.stride));
            table_.set().twofold.csr_scores(rows_, table, range, index_, scores.data(), own_poll);
            for (std::int64_t t = 0; t < T; ++t)
                for (std::int64_t j = 0; j < range.count; ++j) {
                    const std::int64_t i = range.first + j;
                    const double size = norms_[i] + norms_[candidates[t]];
                    const double square = size - 2 * scores[j * table.stride + t];
                    const double apart = square > kEqual * size ? square : 0;
                    distances_[t * n_ + i] = std::min(apart, closest_[i]);
                    sums[t * n_blocks_ + b] += weights_[i] * distances_[t * n_ + i];
                }
            return true;
        };
        for_each_chunk(n_blocks_, n_threads_, block, poll_);
        scatter(candidates, 0);
        return take_best(candidates, sums, chosen);
    }

    // The row at which the running sum of weight times distance passes `goal`; not one at distance zero if there is
    // another.
    std::int64_t draw(double goal) const {
        std::int64_t last = -1;
        for (std::int64_t i = 0; i < n_; ++i) {
            const double mass = weights_[i] * closest_[i];
            if (!(mass > 0)) continue;
            last = i;
            goal -= mass;
            if (goal < 0) return i;
        }
        return last;
    }

  private:
    double take_best(const std::vector<std::int64_t>& candidates, const std::vector<double>& sums,
                     std::vector<std::int64_t>& chosen) {
        std::int64_t best = -1;
        double total = 0;
        for (std::int64_t t = 0; t < std::int64_t(candidates.size()); ++t) {
            double sum = 0;
            for (std::int64_t b = 0; b < n_blocks_; ++b) sum += sums[t * n_blocks_ + b];
            if (best < 0 || sum < total) best = t, total = sum;
        }
        std::copy_n(distances_.begin() + best * n_, n_, closest_.begin());
        chosen.push_back(candidates[best]);
        return total;
    }

    // Put the candidates into the table, or zeros in their places.
    void scatter(const std::vector<std::int64_t>& candidates, double scale) {
        with_entries(rows_, [&](const auto& x) {
            for (std::size_t t = 0; t < candidates.size(); ++t) {
                const std::int64_t row = index_[candidates[t]];
                for (std::int64_t j = x.begin(row); j < x.end(row); ++j)
                    table_.column(x.columns[j])[t] = scale * double(x.values[j]);
            }
        });
    }

    const CsrView& rows_;
    const std::int64_t* index_;
    std::int64_t n_;
    const double* weights_;
    std::int64_t n_blocks_;
    const Poll& poll_;
    int n_threads_ = 1;
    CsrCenters<double> table_;
    std::vector<double> norms_, closest_, distances_;
};

}  // namespace

std::int64_t csr_seed(const CsrView& rows, const std::int64_t* index, std::int64_t n, const double* weights,
                      std::int64_t first, const double* uniforms, std::int64_t n_centers, std::int64_t n_trials,
                      std::int64_t* chosen, const InstructionSet& set, int n_threads, const Poll& poll) {
    Seeding seeding(rows, index, n, weights, n_trials, set, n_threads, poll);
    return draw_centers(seeding, first, uniforms, n_centers, n_trials, chosen);
}

}  // namespace quickmeans
