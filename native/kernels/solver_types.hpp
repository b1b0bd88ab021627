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

// One factor of a product on its support (see refine.hpp). The entries are in row order, columns ascending. Without P
// the diagonal takes its place, without G the identity.
struct RefineJob {
    std::int64_t n_rows;
    std::int64_t n_columns;
    std::int64_t n_entries;
    const double* P;                   // IN  n_rows x n_rows, symmetric, or null
    const double* diagonal;            // IN  n_rows
    const double* G;                   // IN  n_columns x n_columns, symmetric, or null
    const std::int64_t* row_start;     // IN  n_rows + 1
    const std::int32_t* row;           // IN  n_entries
    const std::int32_t* column;        // IN  n_entries
    const std::int64_t* column_start;  // IN  n_columns + 1
    const std::int64_t* by_column;     // IN  n_entries, the entries in column order
    const double* target;              // IN  n_entries, M on the support
    const double* curvature;           // IN  n_entries, the diagonal of the quadratic form
    double* values;                    // IN/OUT  n_entries
    double* work;                      // 3 n_entries of scratch memory
    double* dense;                     // 2 n_rows n_columns of it if there are P and G
    int n_steps;
};

// out = S X for a sparse S, whose row i has the entries start[i] .. start[i + 1] - 1 (see sparse.hpp).
struct SparseJob {
    std::int64_t n_rows;
    const std::int64_t* start;  // IN  n_rows + 1
    const std::int32_t* index;  // IN  rows of X
    const double* values;       // IN
    const double* X;            // IN
    std::int64_t width;         // columns of X
    double* out;                // OUT n_rows x width
};

}  // namespace quickmeans
