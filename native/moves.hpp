// What the searches for better clusters have in common: gains of splits, and swaps whose gain exceeds their price.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// A smaller gain is rounding: of the sums in float64, or of the rows in float32.
double least_gain(double objective, double scatter);

// Split these clusters. `pair_of` says where the two means of the i-th of them go, on this thread. Returns the work.
double split_clusters(const SplitJob& job, const std::vector<std::int64_t>& clusters,
                      const std::function<float*(std::int64_t i, int thread)>& pair_of, const InstructionSet& set,
                      int n_threads, const Poll& poll);

// Rows by cluster, with the second nearest center of each: who would get the rows of a cluster without its center.
struct Receivers {
    const std::int64_t* order;
    const std::int64_t* starts;
    const std::int32_t* seconds;  // -1: none
    const double* weights;
    const double* cluster_weights;

    // Mark the centers that would get much of a removed cluster. `received` has a zero for every center, and keeps
    // them.
    void freeze(std::int64_t cluster, std::vector<char>& frozen, std::vector<double>& received) const;
};

// The center `removed` goes, and the cluster `split` gets two.
struct Swap {
    std::int64_t split, removed;
};

// Swaps with the largest gains and the smallest prices, at most so many: no cluster has part in two, and no center is
// removed that would receive much of another removed cluster.
std::vector<Swap> choose_swaps(const std::vector<double>& prices, const std::vector<double>& gains, std::int64_t most,
                               double least, const Receivers& receivers);

// The places of the values in ascending order; equal ones stay in their order.
std::vector<std::int64_t> ascending(const std::vector<double>& values);

}  // namespace quickmeans
