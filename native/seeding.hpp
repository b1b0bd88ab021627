// k-means++: every new center is drawn with a probability in proportion to weight times squared distance from those
// before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// Rows n x n_columns. `uniforms` has n_trials numbers in [0, 1) for each of n_centers; the best of so many draws
// becomes a center, `first` is the first. The rows chosen are stored. Returns their number, which is less than
// n_centers if no other row with weight is away from them. The number of threads changes no bit.
std::int64_t seed(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, std::int64_t first,
                  const double* uniforms, std::int64_t n_centers, std::int64_t n_trials, std::int64_t* chosen,
                  const InstructionSet& set, int n_threads, const Poll& poll);

// The draws of greedy k-means++: every center is the best of n_trials rows, drawn by weight times squared distance. A
// seeding has add(candidates, centers), which appends the best candidate and returns the sum of these products after
// it, and draw(goal), the row at which their running sum passes the goal.
template <class Seeding>
std::int64_t draw_centers(Seeding& seeding, std::int64_t first, const double* uniforms, std::int64_t n_centers,
                          std::int64_t n_trials, std::int64_t* chosen) {
    std::vector<std::int64_t> centers, candidates{first};
    double total = seeding.add(candidates, centers);
    while (std::int64_t(centers.size()) < n_centers && total > 0) {
        candidates.clear();
        const double* const chances = uniforms + std::int64_t(centers.size()) * n_trials;
        for (std::int64_t t = 0; t < n_trials; ++t) candidates.push_back(seeding.draw(chances[t] * total));
        total = seeding.add(candidates, centers);
    }
    std::copy(centers.begin(), centers.end(), chosen);
    return std::int64_t(centers.size());
}

}  // namespace quickmeans
