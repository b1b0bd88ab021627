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

// An n_rows x n_columns array of any element type and any strides (in bytes); only ever read.
struct RowsView {
    const char* data;
    std::int64_t n_rows;
    std::int64_t n_columns;
    std::int64_t row_stride;
    std::int64_t column_stride;
    Scalar scalar;
};

// A job: what to do with S_1 ... S_Q x for every row x.
//   scores != null                          store the products, scores[row * row_step + k * column_step]
//   labels != null                          keep the n_best largest products, best first, ties to the lower index
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
};

struct Range {
    std::int64_t first;
    std::int64_t count;
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

// Scratch memory of one thread.
template <class T>
struct Workspace {
    T* front;    // width_front x lanes
    T* back;     // width_back x lanes
    T* window;   // kWindowRows x lanes (tile) or n_outputs (single row)
    T* staging;  // lanes x kStagingColumns
    T* heap_scores;
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
};

}  // namespace quickmeans
