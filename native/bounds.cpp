// Bounds on distances, which tell the rows that keep their labels: see search.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "parallel.hpp"
#include "search.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Other centers count as near if they are within so many times the distance of a cluster's farthest row. Those beyond
// are then at least twice as far from every row as its own center.
constexpr float kNear = 3;

}  // namespace

// With more centers, the distances between them are not kept: 16 MB.
constexpr std::int64_t kMostMeasured = 2048;

bool Search::few_centers() const { return now_.n_centers <= kMostMeasured; }

// Adjust the bounds of these rows to the last shifts of the centers; the rows that are in doubt.
std::int64_t Search::move_bounds(const Range& rows, std::int64_t* doubtful) {
    std::int64_t count = 0;
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
        if (now_.moved) {
            const Step& step = now_.steps[now_.labels[i]];
            const float upper = now_.upper[i] + step.shift;
            const float lower = std::min(now_.lower[i] - step.near, step.reach - upper);
            now_.upper[i] = upper;
            now_.lower[i] = std::max(lower, step.closest - upper);
        }
        doubtful[count] = i;
        count += !(now_.upper[i] < now_.lower[i]);
    }
    return count;
}

void Search::move_all_bounds(const Poll& poll) {
    if (!now_.bounded || !now_.moved) return;
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        std::int64_t doubtful[kMostChunkRows];
        move_bounds(chunk_of(c), doubtful);
        return true;
    };
    for_each_chunk(n_chunks(), threads_for(double(n_) * kWorkPerSkipped, n_threads_), chunk, poll);
    now_.moved = false;
}

// Of these rows in doubt, those that still are when their upper bounds have become distances.
std::int64_t Search::tighten(std::int64_t* doubtful, std::int64_t count, const Poll& poll) {
    std::int64_t left = 0;
    for (std::int64_t j = 0; j < count; ++j) {
        const std::int64_t i = doubtful[j];
        if (now_.lower[i] > 0) {
            float square;
            set_.routines.own_distances(rows_ + i * n_columns_, now_.centers.data(), n_columns_, now_.labels.data() + i,
                                        {0, 1}, &square, poll);
            now_.upper[i] = std::sqrt(square);
            if (now_.upper[i] < now_.lower[i]) continue;
        }
        doubtful[left++] = i;
    }
    return left;
}

// Compare these rows with all centers, and renew their bounds.
void Search::compare(const std::int64_t* doubtful, std::int64_t count, float* memory, const Poll& poll) {
    set_.single.nearest.run(nearest_job(doubtful, true), {0, count}, memory, poll);
    for (std::int64_t j = 0; j < count; ++j) {
        const auto i = std::size_t(doubtful[j]);
        const float slack = rounding_ * (norms_[i] + largest_square_);
        now_.upper[i] = std::sqrt(std::max(norms_[i] - 2 * best_[i] + slack, 0.f));
        now_.lower[i] = std::sqrt(std::max(norms_[i] - 2 * next_[i] - slack, 0.f));
    }
}

void Search::measure_all(const Poll& poll) {
    std::vector<std::int64_t> all(std::size_t(now_.n_centers));
    std::iota(all.begin(), all.end(), 0);
    measure(all, poll);
}

// The distances between the moved centers and all others.
void Search::measure(const std::vector<std::int64_t>& moved, const Poll& poll) {
    const std::int64_t K = now_.n_centers;
    if (!few_centers() || moved.empty()) return;
    now_.apart.resize(std::size_t(K * K));
    pack();
    const PanelJob job{now_.centers.data(), n_columns_, moved.data(), panels_.data(), offset_.data(), K};
    std::vector<float> scores(moved.size() * std::size_t(K));
    constexpr std::int64_t kCentersPerChunk = 48;
    const std::int64_t n_moved = std::int64_t(moved.size()),
                       n_chunks = (n_moved + kCentersPerChunk - 1) / kCentersPerChunk;
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const std::int64_t first = c * kCentersPerChunk;
        set_.routines.all_scores(job, {first, std::min(kCentersPerChunk, n_moved - first)}, scores.data(), own_poll);
        return true;
    };
    const double work = work_of_rows(n_moved, n_columns_, K);
    for_each_chunk(n_chunks, threads_for(work, n_threads_), chunk, poll);
    work_ += work;
    for (std::int64_t i = 0; i < n_moved; ++i)
        for (std::int64_t k = 0; k < K; ++k) {
            const std::int64_t j = moved[i];
            const float size = now_.squares[j] + now_.squares[k];
            const float square = now_.squares[j] - 2 * scores[i * K + k] - rounding_ * size;
            now_.apart[j * K + k] = now_.apart[k * K + j] = std::sqrt(std::max(square, 0.f));
        }
}

// How bounds change with centers that have moved so far. For the rows of center k only near centers matter: all others
// are at least `reach` away from k, so at least reach - upper away from the row.
void Search::set_steps(const std::vector<float>& shift) {
    const std::int64_t K = now_.n_centers;
    now_.steps.assign(std::size_t(K), {0, *std::max_element(shift.begin(), shift.end()), kInfinity, 0});
    now_.moved = true;
    for (std::int64_t k = 0; k < K; ++k) now_.steps[k].shift = shift[k];
    if (!few_centers()) return;
    work_ += double(K * K);
    for (std::int64_t k = 0; k < K; ++k) {
        float farthest = 0;
        for (const auto& largest : largest_) farthest = std::max(farthest, largest[k]);
        const float limit = kNear * (farthest + shift[k]);
        const float* const apart = now_.apart.data() + k * K;
        float moves = 0, beyond = kInfinity, least = kInfinity;
        for (std::int64_t j = 0; j < K; ++j) {
            if (j == k) continue;
            least = std::min(least, apart[j]);
            if (apart[j] < limit)
                moves = std::max(moves, shift[j]);
            else
                beyond = std::min(beyond, apart[j]);
        }
        now_.steps[k] = {shift[k], moves, beyond, least};
    }
}

}  // namespace quickmeans
