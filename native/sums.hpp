// Sums and moments of rows, on several threads. The number of threads changes no bit.
#pragma once

#include "kernels/types.hpp"

namespace quickmeans {

// The sums of all clusters; see SumJob.
void add_members(const SumJob& job, std::int64_t n_clusters, const InstructionSet& set, int n_threads,
                 const Poll& poll);

// The moments of the rows in n_blocks blocks of equal length, give or take a row; see MomentJob.
void add_moments(const MomentJob& job, std::int64_t n_blocks, const InstructionSet& set, int n_threads,
                 const Poll& poll);

// The rows about an origin in float32; see CenterJob.
void center_rows(const CenterJob& job, const InstructionSet& set, int n_threads, const Poll& poll);

}  // namespace quickmeans
