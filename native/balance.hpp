// Labels that keep the sizes of clusters within bounds, at the least sum of squares that the candidates of rows allow.
//
// This is a flow of least cost: every row goes to one of its candidates, and every cluster passes `least` to `most`
// rows on to a node T. A residual edge from cluster a to b costs what the cheapest row of a would add by moving to b;
// an edge between a cluster and T costs nothing. Rows begin at their nearest candidates. Then, for every row too many
// (or too few), the shortest path to (from) a cluster with room (with a row to spare) is found by Dijkstra's algorithm
// with potentials, the negative prices, and the rows on it move. The result has the least cost of all labels among the
// candidates, up to rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// IN  the candidates of n rows, n x m, different centers or -1, with squared distances
struct BalanceJob {
    std::int64_t n, n_centers, m;
    const std::int32_t* candidates;
    const float* squares;
    std::int64_t least, most;  // rows in a cluster; least * n_centers <= n <= most * n_centers
    double* prices;            // OUT  n_centers: what a row's place in each cluster is worth
    std::int32_t* labels;      // OUT
    char* reached;             // OUT  the clusters that a stuck search has reached
};

// How it ended: all sizes are within their bounds; or rows of the clusters that were reached have no candidates
// outside; or no rows outside have candidates among them.
enum class Balanced : int { all = 0, needs_more_outside = 1, needs_more_inside = 2 };

Balanced balance(const BalanceJob& job, const Poll& poll);

}  // namespace quickmeans
