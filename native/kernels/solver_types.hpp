// Plain data of the solvers' kernels; see types.hpp.
#pragma once

#include <cstdint>

namespace quickmeans {

// Least squares on supports: n_rows problems over n_atoms unknowns with one Gram matrix (see support.hpp).
struct SupportJob {
    std::int64_t n_rows;
    std::int64_t n_atoms;
    const double* gram;        // IN  n_atoms x n_atoms
    const double* targets;     // IN  n_rows x n_atoms, read on the support only
    const double* weights;     // IN  n_rows, factors of the prices
    const std::int64_t* drop;  // IN  n_rows, the number of entries to remove
    unsigned char* support;    // IN/OUT  n_rows x n_atoms, 0 or 1
    double* values;            // OUT n_rows x n_atoms
    double* prices;            // OUT n_rows x n_atoms, infinite outside the support; or null
};
constexpr int kPivots = 4;           // swept together; supports are filled up to a multiple of it with unit pivots
constexpr int kSupportPadding = 16;  // rows of scratch memory are at most this much longer than a support

// The length of a row of n doubles in memory: whole vectors of any instruction set, and not a multiple of 512 bytes,
// because then the cache could hold only a few entries of a column.
constexpr std::int64_t whole_vectors(std::int64_t n) { return (n + 7) / 8 * 8; }
constexpr std::int64_t padded(std::int64_t n) { return whole_vectors(n) + (whole_vectors(n) % 64 == 0 ? 8 : 0); }

// Where the entries of a sparse n_rows x n_columns matrix are. They are in row order, columns ascending.
struct SupportView {
    std::int64_t n_rows;
    std::int64_t n_columns;
    const std::int64_t* row_start;      // IN  n_rows + 1
    const std::int32_t* row;            // IN  of every entry
    const std::int32_t* column;         // IN  of every entry
    const std::int64_t* column_start;   // IN  n_columns + 1
    const std::int64_t* by_column;      // IN  the entries in column order
    const std::int32_t* row_by_column;  // IN  their rows
};

// out = S X for a sparse S, whose row i has the entries start[i] .. start[i + 1] - 1 (see sparse.hpp).
struct SparseJob {
    std::int64_t n_rows;
    const std::int64_t* start;  // IN  n_rows + 1
    const std::int32_t* index;  // IN  rows of X
    const double* values;       // IN
    const double* X;            // IN
    std::int64_t stride;        // length of the rows of X and of out in memory
    double* out;                // OUT
    std::int64_t first, end;    // the columns that are multiplied: whole vectors
};

}  // namespace quickmeans
