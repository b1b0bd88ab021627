// Plain data that all instruction sets share: the input and the output of every kernel.
//
// Nothing here has a body. A kernel file is compiled once per instruction set, and of a shared inline function the
// linker keeps one copy, which could be one that the machine cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csr_types.hpp"
#include "scan_types.hpp"
#include "solver_types.hpp"

namespace quickmeans {

// Long loops call this now and then. What it throws ends them.
struct Poll {
    void (*call)(void* context);
    void* context;
};

struct Range {
    std::int64_t first;
    std::int64_t count;
};

// ---- a product of sparse factors ------------------------------------------------------------------------------------

// A slice has sixteen rows of a factor: one AVX-512 vector of float32. Rows change places within a window only. A
// window of scores, 256 rows x 64 lanes of float32, has 64 KB and stays in the second-level cache.
constexpr int kSliceRows = 16;
constexpr int kWindowRows = 256;

// Up to sixteen rows of one factor, in the order in which they are computed.
//   Sparse: the entries of the rows follow each other in columns and values, from `begin` on; a tile reads them. They
//   are stored a second time in lane_columns and lane_values, entry l of row i at lane_begin + 16 * l + i, with short
//   rows filled up by zeros in column n_columns; a single row of input reads these.
//   Dense: the coefficient of row i and column j is lane_values[lane_begin + 16 * j + i].
struct Slice {
    std::int64_t begin;
    std::int64_t lane_begin;
    std::int32_t n_rows;
    std::int32_t longest;
    std::uint32_t row[kSliceRows];  // the place of each result; past n_rows, in the padding after the last result
    std::int32_t length[kSliceRows];
    bool dense;
    bool contiguous;  // whether there are sixteen rows with consecutive results
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

// n_rows x n_columns numbers of any element type and any strides (in bytes), read only. With an index, row i is row
// index[i] of the array. All bytes from the first row to `end` can be read; null if rows do not ascend in memory.
struct RowsView {
    const char* data;
    std::int64_t n_rows;
    std::int64_t n_columns;
    std::int64_t row_stride;
    std::int64_t column_stride;
    Scalar scalar;
    const std::int64_t* index;
    const char* end;
};

// The product S_1 ... S_Q x for every row x.
//   scores != null           store the products, at scores[row * row_step + k * column_step]
//   labels != null           keep the n_best largest products, largest first, ties to the lower index
//   centers != null as well  list the n_listed largest products, and keep those candidates whose exact scores
//                            <x, centers_k> + center_offset_k are the n_best largest, in any order
// The offset, unless null, is added to the products. Rows to be compared must lie in [-limit, limit].
template <class T>
struct ProductJob {
    const FactorView<T>* factors;  // in the order of application: S_Q first
    std::int64_t n_factors;
    const T* offset;
    double largest_offset;  // the largest absolute value of all offsets
    T limit;
    RowsView rows;
    T* scores;
    std::int64_t score_row_step;
    std::int64_t score_column_step;
    std::int64_t* labels;  // OUT  n_rows x n_best
    T* best;               // OUT  n_rows x n_best, the scores of the labels
    std::int64_t n_best;
    const T* centers;  // n_rows of the product x n_columns
    const T* center_offset;
    std::int64_t n_listed;  // >= n_best; equal to it without centers
};

// The nearest center of every row: the product finds candidates, exact scores decide among them (see shortlist.hpp).
// The results of a row have its position in the array, also with an index.
template <class T>
struct SettleJob {
    ProductJob<T> screen;     // IN  factors, offset, limit, and rows or their projections
    RowsView rows;            // IN  the rows themselves
    const T* mean;            // IN  n_columns
    const T* centers;         // IN  n_centers x n_columns
    const T* center_offset;   // IN  n_centers
    const T* slack;           // IN  n_centers, the distance between each center and its row of the product
    T margin;                 // IN  scores are trusted up to this share of slack times distance from the mean
    std::int64_t shortlist;   // IN  the number of candidates of every row; 0: all within the margin
    bool exact_scores;        // IN  false: a row with one candidate gets a lower bound of its score, and not the score
    bool norms_known;         // IN
    T* norms;                 // IN if known, else OUT  squared distance from the mean
    std::int32_t* labels;     // OUT
    T* best;                  // OUT  <x, c> + offset of the nearest center c, or the lower bound
    T* second;                // OUT  an upper bound of the scores of all other centers, if the margin holds
    std::int64_t* n_listed;   // IN/OUT  grows by the number of candidates
    std::int64_t* n_settled;  // IN/OUT  grows by the number of exact scores
};
// Candidates per row that wait to be settled. More make fewer passes over the list; 64 rows x 64 candidates of 12
// bytes are 48 KB, and stay in the cache beside the window. Results do not depend on it, but `second` may.
constexpr int kListed = 64;

// Gaussian kernel values exp(-gamma |x - m - v_k|^2) between rows x and the rows v_k of a product (see gaussian.hpp).
template <class T>
struct GaussianJob {
    ProductJob<T> product;  // its factors, offset -|v_k|^2 / 2, limit, rows and scores
    const T* mean;          // IN  n_columns
    T gamma;
};

// The memory of one thread.
template <class T>
struct Workspace {
    T* front;        // the input of the first, third ... factor: its widest n_columns x lanes
    T* back;         // the input of the second, fourth ... factor
    T* window;       // kWindowRows x lanes (tile) or n_outputs (single row)
    T* staging;      // lanes x kStagingColumns, converted input that is to be transposed
    T* line;         // one row of the input
    T* heap_scores;  // lanes x 2 n_listed
    std::int64_t* heap_labels;
    Poll poll;
};
// Columns that are converted at a time: 64 rows of them in float32 are 16 KB, half of the first-level cache.
constexpr int kStagingColumns = 64;

// One operation on rows, for a tile and for a single row; both give a row the same bits. `lanes` is the width of the
// tile, and at least rows.count. They return false if rows that must be compared are not within the limit (NaN is not).
template <class T, class Job>
struct RowKernel {
    bool (*tile)(const Job&, const Range& rows, int lanes, const Workspace<T>&);
    bool (*row)(const Job&, std::int64_t row, const Workspace<T>&);
};

// The nearest centers of rows among all centers, which are in panels (see nearest.hpp). Results have the position of
// their row in the array, also with an index. Without `best`, only labels are wanted.
template <class T>
struct NearestJob {
    RowsView rows;
    const T* tiles;  // the rows as tiles, or null
    const T* panels;
    const T* offset;  // of every center, and of those that fill up the last panel
    std::int64_t n_centers;
    T limit;                // rows must lie in [-limit, limit]
    const T* mean;          // n_columns, for the norms
    std::int32_t* labels;   // OUT
    std::int32_t* seconds;  // OUT or null  the second nearest; -1 if there is one center
    T* best;                // OUT or null  <x, c> + offset of the nearest
    T* next;                // OUT or null  the same of the second nearest
    T* norms;               // OUT or null  squared distance from the mean
};

// Finds the nearest centers of rows. False: a row is not within the limit. The memory is for n_columns x lanes numbers
// and, after them, lanes x kStagingColumns. Where the job has tiles, ranges of rows begin with one.
template <class T>
struct NearestKernel {
    bool (*run)(const NearestJob<T>&, const Range& rows, T* memory, const Poll&);
    // Writes the rows as tiles, n_columns x lanes numbers each; the last one is filled up.
    void (*make_tiles)(const RowsView&, const Range& rows, T* tiles, T* staging);
    int lanes;
};

// Distances of rows from all centers (see distances.hpp). A panel has as many centers as two vectors have lanes:
// coordinate d of center k is panels[(k / panel * n_columns + d) * panel + k % panel], and panels are filled up with
// zeros.
template <class T>
struct DistanceJob {
    RowsView rows;
    const T* mean;     // n_columns
    const T* centers;  // n_centers x n_columns
    const T* panels;   // the centers less the mean
    const T* squares;  // the squared norms of these, filled up with zeros
    std::int64_t n_centers;
    bool spherical;           // whether rows are divided by their lengths
    bool by_differences;      // whether all squares are summed from differences; the mean is zero then
    std::int64_t block_rows;  // rows that are multiplied together, a multiple of six
    std::int64_t row_step;    // between two rows of a block, at least n_columns
    void* out;                // OUT  n_rows x n_centers of T,
    bool narrow;              // or of float, though T is double
};

// Rows by way of groups of centers (see groups.hpp).
template <class T>
struct GroupJob;
template <class T>
struct GroupBlock;
template <class T>
struct GroupMemory;
template <class T>
struct GroupKernel {
    bool (*place)(const GroupJob<T>&, const GroupBlock<T>&, const Range& rows, GroupMemory<T>&);
    void (*search)(const GroupJob<T>&, const GroupBlock<T>&, const Range& rows, GroupMemory<T>&);
};

template <class T>
struct Kernels {
    RowKernel<T, ProductJob<T>> product;
    RowKernel<T, SettleJob<T>> settle;
    RowKernel<T, GaussianJob<T>> gaussian;
    NearestKernel<T> nearest;
    GroupKernel<T> groups;
    bool (*distances)(const DistanceJob<T>&, const Range& rows, T* scratch, const Poll&);
    std::int64_t (*csr_nearest)(const CsrNearestJob<T>&, const Range& rows, T* scratch, const Poll&);
    void (*csr_scores)(const CsrView&, const CsrTable<T>&, const Range& rows, const std::int64_t* index, T* out,
                       const Poll&);
};

// ---- sums of rows, and starting points ------------------------------------------------------------------------------

// Sums of rows by cluster (see sums.hpp): members[starts[k]] ... members[starts[k + 1] - 1] are the rows of cluster k.
struct SumJob {
    RowsView rows;
    const std::int64_t* members;
    const std::int64_t* starts;
    const double* weights;  // one per member, or null for ones
    double* sums;           // IN/OUT  n_clusters x n_columns
};

// Sums of rows and of their squares, by blocks of rows (see sums.hpp).
struct MomentJob {
    RowsView rows;
    const double* weights;  // one per row, or null for ones
    const double* shift;    // n_columns
    double* sums;           // IN/OUT  n_blocks x n_columns
    double* squares;        // IN/OUT  n_blocks x n_columns
};

// The rows about an origin in float32: (x - origin) * scale; without an origin x * scale / |x|.
struct CenterJob {
    RowsView rows;
    const double* origin;  // n_columns, or null
    double scale;
    float* out;  // OUT  n_rows x n_columns
};

// The squared distance of every row from the center that its label names (see distances.hpp).
struct DifferenceJob {
    RowsView rows;
    const std::int32_t* labels;
    const double* centers;  // n_centers x n_columns
    const double* shift;    // what is subtracted from every row; null for zeros
    bool spherical;         // whether rows are divided by their lengths
    double* out;            // OUT  n_rows
};

// ---- the search for better clusters ---------------------------------------------------------------------------------

// A panel has sixteen centers side by side: coordinate d of center k is panels[(k / 16 * n_columns + d) * 16 + k % 16].
// Panels are filled up with centers of zeros and offsets of -infinity.
constexpr int kPanel = 16;

// Rows in float32 to be multiplied with panels (see panel.hpp).
struct PanelJob {
    const float* rows;  // n_columns each
    std::int64_t n_columns;
    const std::int64_t* index;  // the rows to look at
    const float* panels;
    const float* offset;  // -|c_k|^2 / 2
    std::int64_t n_centers;
};

// Rows in float32 that leave a cluster and join another (see sums.hpp).
struct ChangeJob {
    const float* rows;  // n_columns each
    std::int64_t n_columns;
    const double* weights;         // one per row
    const std::uint16_t* changes;  // rows, counted from the first of their chunk, from that row's place on
    const std::int32_t* labels;    // the clusters they join
    std::int32_t* summed;          // IN/OUT  those they leave, or -1
};
struct ClusterTotals {
    double* sums;  // n_clusters x n_columns
    double* weights;
    std::int64_t* sizes;
};

// Rows in float32 against the centers of a list (see listed.hpp). Results have the position of their row.
struct ListJob {
    RowsView rows;
    const float* centers;      // n_columns each
    const float* offset;       // of every center
    const std::int32_t* list;  // the centers to compare with
    std::int64_t n_listed;     // at least one
    std::int32_t* labels;      // OUT
    std::int32_t* seconds;     // OUT  the second nearest, or -1
    float* best;               // OUT or null (then there are no seconds either)  the score of the nearest
    float* next;               // OUT  and of the second nearest
    bool more;                 // whether the results are IN/OUT: of other lists, which must not share centers with this
};

// The best way found to split each cluster in two (see split.hpp).
struct SplitJob {
    RowsView rows;                  // in float32
    const double* weights;          // one per row
    const std::int64_t* order;      // rows by cluster
    const std::int64_t* starts;     // where each cluster begins in it
    const float* centers;           // n_clusters x n_columns
    const double* cluster_weights;  // n_clusters
    std::int64_t most;              // rows of a cluster that are looked at
    double* gains;                  // OUT  what the split saves
};

// The distances of k-means++ from all rows to some candidates (see seeding.hpp).
struct SeedJob {
    PanelJob panel;  // the rows, and the candidates as one panel
    std::int64_t n_rows;
    const double* weights;
    const float* norms;              // squared
    const float* closest;            // squared distance of each row to the nearest center so far
    const std::int32_t* owners;      // that center
    const float* gaps;               // of every center: a bound on its squared distance to the nearest candidate
    const std::int64_t* candidates;  // rows, at most kTrials
    const float* candidate_norms;    // kTrials: squared
    std::int64_t n_blocks;
    float* distances;  // OUT  n_rows x kTrials: squared distances with the candidate as a center
    double* sums;      // OUT  n_blocks x kTrials: of these times weights
};
// Candidates for one center: as many as scikit-learn draws for a thousand centers, and what fills one vector.
constexpr int kTrials = 8;
// Rows are drawn by sums over blocks of this size: another value gives other starting points.
constexpr std::int64_t kSeedBlock = 1024;

// ---- all that one instruction set has -------------------------------------------------------------------------------

// The kernels that do not depend on the type of the product.
struct Routines {
    void (*add_members)(const SumJob&, std::int64_t cluster, const Range& columns, const Poll&);
    void (*add_changes)(const ChangeJob&, const Range& chunk, const ClusterTotals&, const Poll&);
    void (*moments)(const MomentJob&, std::int64_t block, const Range& rows, const Poll&);
    void (*center_rows)(const CenterJob&, const Range& rows, const Poll&);
    void (*squared_differences)(const DifferenceJob&, const Range& rows, double* line, const Poll&);
    void (*seed_block)(const SeedJob&, std::int64_t block, const Poll&);
    void (*all_scores)(const PanelJob&, const Range& rows, float* out, const Poll&);
    void (*square_rows)(const float* rows, std::int64_t n_columns, const Range& range, double* out, const Poll&);
    void (*own_distances)(const float* rows, const float* centers, std::int64_t n_columns, const std::int32_t* labels,
                          const Range& range, float* out, const Poll&);
    // Splits a cluster; `pair`, 2 x n_columns, gets the two means.
    void (*split)(const SplitJob&, std::int64_t cluster, float* pair, float* scratch, std::int64_t* index, const Poll&);
    void (*nearest_listed)(const ListJob&, const Range& rows, float* memory, const Poll&);
    void (*score_listed)(const ListJob&, const Range& rows, float* memory, float* out, const Poll&);
    // Adds so many rows, in float32, times their weights to the sum; returns the sum of the weights.
    double (*sum_rows)(const float* rows, std::int64_t n_columns, const std::int64_t* index, std::int64_t count,
                       const double* weights, double* sum);
    void (*fit_rows)(const SupportJob&, const Range& rows, double* scratch, std::int32_t* order, const Poll&);
    void (*sparse_times)(const SparseJob&, const Poll&);
    // See on_support.hpp.
    void (*support_dots)(const SupportView&, const double* A, const double* B, std::int64_t length, const Range& rows,
                         double* out, const Poll&);
    void (*left_on_support)(const SupportView&, const double* P, const double* s, double* line, double* out,
                            const Poll&);
    void (*right_on_support)(const SupportView&, const double* diagonal, const double* G, const double* s, double* out,
                             const Poll&);
    double (*descend)(std::int64_t n, double length, const double* p, const double* q, const double* D, double* s,
                      double* r);
    double (*inner_product)(const double* a, const double* b, std::int64_t n);
    void (*transpose)(const double* a, std::int64_t n, std::int64_t m, double* out);
    void (*weigh_and_subtract)(double* V, const double* weights, const double* H, std::int64_t n, std::int64_t m);
    void (*scale_cells)(double* V, const double* row, const double* column, std::int64_t n, std::int64_t m);
    void (*scan_list)(const ScanJob&, const ScanList&, const std::int64_t* members, std::int64_t count, const Poll&);
    void (*encode_rows)(const EncodeJob&, const Range& rows);  // null: there are no codes
    void (*sort_best)(const ScanJob&, const Range& queries);
    void (*project)(const ProjectJob&, const Range& queries, const Poll&);
};

struct InstructionSet {
    const char* name;
    int max_tile_bytes;  // the bytes of one coordinate of the widest tile
    int vector_bytes;
    Kernels<float> single;
    Kernels<double> twofold;
    Routines routines;
};

}  // namespace quickmeans
