// The inner loops of the solvers over all rows, on several threads. The number of threads changes no bit.
#pragma once

#include "kernels/types.hpp"

namespace quickmeans {

// Least squares on supports; see SupportJob.
void fit_supports(const SupportJob& job, const InstructionSet& set, int n_threads, const Poll& poll);

// out = rows times atoms on the support, and zero elsewhere; the zeros of the atoms are skipped.
struct MaskedJob {
    std::int64_t n_rows;
    std::int64_t n_columns;  // of `rows`, below 2^31
    std::int64_t n_atoms;
    const double* rows;            // IN  n_rows x n_columns
    const double* atoms;           // IN  n_columns x n_atoms
    const unsigned char* support;  // IN  n_rows x n_atoms
    double* out;                   // OUT n_rows x n_atoms
};
void masked_product(const MaskedJob& job, int n_threads, const Poll& poll);

}  // namespace quickmeans
