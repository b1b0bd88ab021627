// Plain data shared by every instruction set: what goes into a kernel and what comes out.
//
// Nothing here has a body: a kernel file is compiled once per instruction set, and a shared inline function could
// end up in the wrong one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quickmeans {

// Rows of a factor are handled sixteen at a time; a window is the stretch of rows that may change places.
constexpr int kSliceRows = 16;
constexpr int kWindowRows = 256;

// Up to sixteen rows of one factor, in the order in which they are computed.
//   Sparse: the entries of the rows stand one after the other in columns and values, from `begin` on. They stand a
//   second time in lane_columns and lane_values, entry l of row i at lane_begin + 16 * l + i, short rows filled up with
//   zeros in column n_columns: a tile wants its rows one by one, a single row wants them side by side.
//   Dense: the coefficient of row i and column j is lane_values[lane_begin + 16 * j + i].
struct Slice {
    std::int64_t begin;
    std::int64_t lane_begin;
    std::int32_t n_rows;
    std::int32_t longest;
    std::uint32_t row[kSliceRows];  // where each result goes; past n_rows, into the padding after the last one
    std::int32_t length[kSliceRows];
    bool dense;
    bool contiguous;  // sixteen rows whose results stand side by side
};

// One factor S, n_rows x n_columns. The slices [windows[i], windows[i + 1]) hold the rows of window i.
template <class T>
struct FactorView {
    std::int64_t n_rows;
    std::int64_t n_columns;
    const Slice* slices;
    std::int64_t n_slices;
    const std::int64_t* windows;
    const std::uint32_t* columns;
    const T* values;
    const std::uint32_t* lane_columns;
    const T* lane_values;
};

enum class Scalar : std::int32_t { f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, count };

// n_rows x n_columns numbers of any element type and any strides (in bytes); only ever read. With an index, row i is
// row index[i] of the array.
struct RowsView {
    const char* data;
    std::int64_t n_rows;
    std::int64_t n_columns;
    std::int64_t row_stride;
    std::int64_t column_stride;
    Scalar scalar;
    const std::int64_t* index;
};

// A job: what to do with S_1 ... S_Q x for every row x.
//   scores != null                          store the products, scores[row * row_step + k * column_step]
//   labels != null                          keep the n_best largest products, best first, ties to the lower index
//   centers != null too                     list the n_listed largest, and keep those with the n_best largest
//                                           <x, centers_k> + center_offset_k, in any order
// `offset` (or null) is added to the products before they are compared. Rows to be compared must lie in [-limit,
// limit].
template <class T>
struct Job {
    const FactorView<T>* factors;  // in the order of application: S_Q first
    std::int64_t n_factors;
    const T* offset;
    double largest_offset;  // of absolute values
    T limit;
    RowsView rows;
    T* scores;
    std::int64_t score_row_step;
    std::int64_t score_column_step;
    std::int64_t* labels;  // n_rows x n_best
    T* best;               // n_rows x n_best
    std::int64_t n_best;
    const T* centers;  // n_rows of the product x n_columns
    const T* center_offset;
    std::int64_t n_listed;  // >= n_best; equal to it without centers
};

struct Range {
    std::int64_t first;
    std::int64_t count;
};

// The nearest of some centres for every row: the product screens them, dense rows settle it (see shortlist.hpp).
// Results stand where the rows stand in the array, whatever the index.
template <class T>
struct SettleJob {
    Job<T> screen;           // its factors, offset, limit and rows
    RowsView rows;           // IN  the rows themselves, if those of the screen are projections of them
    const T* mean;           // IN  n_columns
    const T* centers;        // IN  n_centers x n_columns
    const T* center_offset;  // IN  n_centers
    const T* slack;          // IN  n_centers, how far the screen is from each centre
    T margin;                // IN  the share of slack times distance from the mean that scores may be wrong by
    std::int64_t shortlist;  // IN  so many candidates for every row; 0: as many as are within margin
    bool exact_scores;       // IN  or only rows with more than one candidate
    bool norms_known;
    T* norms;                 // IN (or else OUT)  squared distance from the mean
    std::int32_t* labels;     // OUT
    T* best;                  // OUT  <x, c> + offset of the nearest centre c, or what it is at least
    T* second;                // OUT  no other centre's score is above this, as far as the screen can tell
    std::int64_t* n_listed;   // IN/OUT  grows by the number of candidates
    std::int64_t* n_settled;  // IN/OUT  grows by the number of those whose dense rows were looked at
};
constexpr int kListed = 64;  // candidates that wait to be settled, at most

// Gaussian kernel values exp(-gamma |x - m - v_k|^2) between rows x and the rows v_k of a product (see gaussian.hpp).
template <class T>
struct GaussianJob {
    Job<T> product;  // its factors, offset -|v_k|^2 / 2, limit, rows and scores
    const T* mean;   // IN  n_columns
    T gamma;
};

// Least squares on supports: n_rows problems over n_atoms unknowns with one Gram matrix (see support.hpp).
struct SupportJob {
    std::int64_t n_rows;
    std::int64_t n_atoms;
    const double* gram;        // IN  n_atoms x n_atoms
    const double* targets;     // IN  n_rows x n_atoms, read on the support only
    const double* weights;     // IN  n_rows, factors of the prices
    const std::int64_t* drop;  // IN  n_rows, how many entries to take away
    unsigned char* support;    // IN/OUT  n_rows x n_atoms, 0 or 1
    double* values;            // OUT n_rows x n_atoms
    double* prices;            // OUT n_rows x n_atoms, infinite outside the support; or null
};
constexpr int kPivots = 4;           // swept together; supports are filled up to a multiple of it with unit pivots
constexpr int kSupportPadding = 16;  // so much longer than a support may the rows of scratch memory be
using FitRows = void (*)(const SupportJob&, const Range& rows, double* scratch, std::int32_t* order);

// Sums of rows by cluster (see sums.hpp); the members of cluster k are members[starts[k]] ... members[starts[k + 1] -
// 1].
struct SumJob {
    RowsView rows;
    const std::int64_t* members;
    const std::int64_t* starts;
    const double* weights;  // one a member, or null for ones
    double* sums;           // IN/OUT  n_clusters x n_columns
};
using AddMembers = void (*)(const SumJob&, std::int64_t cluster, const Range& columns);

// Sums of rows and of their squares, block by block (see sums.hpp).
struct MomentJob {
    RowsView rows;
    const double* weights;  // one a row, or null for ones
    const double* shift;    // n_columns
    double* sums;           // IN/OUT  n_blocks x n_columns
    double* squares;        // IN/OUT  n_blocks x n_columns
};
using AddBlockMoments = void (*)(const MomentJob&, std::int64_t block, const Range& rows);

// Starting points (see seeding.hpp). The squared distance of points i and j is that of their columns plus the
// residuals of both.
struct SeedJob {
    std::int64_t n_points;
    std::int64_t n_columns;
    const float* points;     // IN  n_columns x n_points
    const float* residuals;  // IN  n_points
    const double* weights;   // IN  n_points
    std::int64_t n_centers;
    std::int64_t n_trials;
    std::int64_t first;      // IN  the first centre
    const double* uniforms;  // IN  n_centers x n_trials, in [0, 1)
    std::int64_t* chosen;    // OUT n_centers
};
using Seed = std::int64_t (*)(const SeedJob&, float* closest, float* trial, float* best, double* scratch);

// One factor of a product on its support (see refine.hpp). The entries stand row by row, columns ascending. Without P
// the diagonal stands for it, without G the identity.
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
    const std::int64_t* by_column;     // IN  n_entries, the entries column by column
    const double* target;              // IN  n_entries, M on the support
    const double* curvature;           // IN  n_entries, the diagonal of the quadratic form
    double* values;                    // IN/OUT  n_entries
    double* work;                      // 3 n_entries
    double* dense;                     // 2 n_rows n_columns if there are P and G
    int n_steps;
};
using Refine = void (*)(const RefineJob&, double* inner, double* square);

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
using SparseTimes = void (*)(const SparseJob&);

// What does not depend on the type of the product.
struct Routines {
    FitRows fit_rows;
    AddMembers add_members;
    AddBlockMoments moments;
    Seed seed;
    Refine refine;
    SparseTimes sparse_times;
};

// Scratch memory of one thread.
template <class T>
struct Workspace {
    T* front;        // width_front x lanes
    T* back;         // width_back x lanes
    T* window;       // kWindowRows x lanes (tile) or n_outputs (single row)
    T* staging;      // lanes x kStagingColumns
    T* line;         // one row of the input
    T* heap_scores;  // lanes x 2 n_listed
    std::int64_t* heap_labels;
};
constexpr int kStagingColumns = 64;

// What one instruction set offers. `lanes` is the number of rows in a tile; the row range never exceeds it.
// Each returns false if rows that must be compared are not within the job's limit; NaN is not.
template <class T>
struct Kernels {
    const char* name;
    int max_tile_bytes;
    bool (*tile)(const Job<T>&, const Range& rows, int lanes, const Workspace<T>&);
    bool (*row)(const Job<T>&, std::int64_t row, const Workspace<T>&);
    bool (*settle_tile)(const SettleJob<T>&, const Range& rows, int lanes, const Workspace<T>&);
    bool (*settle_row)(const SettleJob<T>&, std::int64_t row, const Workspace<T>&);
    bool (*gaussian_tile)(const GaussianJob<T>&, const Range& rows, int lanes, const Workspace<T>&);
    bool (*gaussian_row)(const GaussianJob<T>&, std::int64_t row, const Workspace<T>&);
};

}  // namespace quickmeans
