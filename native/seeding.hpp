// k-means++: every new center is drawn with a probability in proportion to weight times squared distance from those
// before it.
#pragma once

#include <cstdint>

#include "kernels/types.hpp"

namespace quickmeans {

// Rows n x n_columns. `uniforms` has n_trials numbers in [0, 1) for each of n_centers; the best of so many draws
// becomes a center, `first` is the first. The rows chosen are stored. Returns their number, which is less than
// n_centers if no other row with weight is away from them. The number of threads changes no bit.
std::int64_t seed(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, std::int64_t first,
                  const double* uniforms, std::int64_t n_centers, std::int64_t n_trials, std::int64_t* chosen,
                  const InstructionSet& set, int n_threads, const Poll& poll);

}  // namespace quickmeans
