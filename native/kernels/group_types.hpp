// Centers in groups: what the kernels of groups.hpp read and write.
#pragma once

#include "types.hpp"

namespace quickmeans {

// Points in panels (see kPanel), and what is added to their scores: -infinity for those that fill up a panel.
template <class T>
struct PointPanels {
    std::int64_t n_points;
    const T* panels;
    const T* offset;
};

// The nearest center of every row by way of groups of centers. Results have the position of their row in the array.
template <class T>
struct GroupJob {
    RowsView rows;
    const T* mean;                // IN  n_columns
    const T* centers;             // IN  n_centers x n_columns
    const T* center_offset;       // IN  n_centers; <x, c_k> + center_offset_k is the exact score
    std::int64_t n_coordinates;   // IN  of a point: one more than there are directions
    std::int64_t n_narrow;        // IN  of the middle of a group: the first of these
    PointPanels<T> directions;    // IN  with n_columns numbers each
    PointPanels<T> groups;        // IN  the middles g, with offset -|g|^2 / 2
    std::int64_t n_first;         // IN  of the coordinates that say which group a row looks into first
    PointPanels<T> first_groups;  // IN  these of the middles, with their offset
    const T* radii;               // IN  of the groups, and zeros that fill up the last panel
    const std::int64_t* starts;   // IN  n_groups + 1; the places of a group's points, a multiple of kPanel each
    PointPanels<T> points;        // IN  c~ of the centers, by place, with offset -|c~|^2 / 2
    const T* slack;               // IN  their last coordinates
    const std::int32_t* members;  // IN  their centers
    const T* gain;                // IN  n_centers  (|c_k|^2 - |c~_k|^2) / 2
    T largest_gain;               // IN
    bool spherical;               // IN  whether the points of rows are those of x / |x|
    T reach;     // IN  a row looks this much times the distance of its first center farther than its nearest group,
                 // squared, unless `known`
    T limit;     // IN  rows must lie in [-limit, limit]
    T rounding;  // IN  scores are rounded by at most this share of |x - m|^2 + `scale`
    T scale;     // IN
    bool known;  // IN  whether labels and best are those of some center, to be made certain
    std::int32_t* labels;  // OUT, and IN if known
    T* best;               // OUT, and IN if known  the exact score
    T* second;             // OUT  the largest exact score of another candidate
    T* norms;              // OUT  squared distance from the mean
};

// Rows that are worked on together, in the order of the groups that they look into first.
template <class T>
struct GroupBlock {
    std::int64_t first;         // of the rows of the job
    T* points;                  // n_rows x n_coordinates
    std::int32_t* group;        // n_rows  the group that a row looks into first
    const std::int64_t* order;  // n_rows  rows of the block, sorted by `group`
};

// What is known of one row.
template <class T>
struct GroupSearch {
    T threshold;  // no center with a lower score is nearest, if margin and reach hold
    T best, second;
    T inside;   // the square of the coordinates that groups have, if `known`
    T farther;  // else, how much farther than its nearest group the row looks, squared
    T closest;  // the score of that group
    T least;    // the least score of a group to look into
    std::int32_t label, n_listed, n_settled, n_seen;
};

// A group that a row of a chunk may look into.
template <class T>
struct GroupScore {
    T score;
    std::int32_t group, row;
};

// Rows of a chunk, one for each bit of the words that say which rows look into a group.
constexpr std::int64_t kGroupRows = 512;
constexpr std::int64_t kGroupWords = kGroupRows / 64;
// Candidates of a row that wait to be settled: 512 rows x 32 candidates of 8 bytes are 128 KB, and stay in the
// second-level cache.
constexpr int kGroupListed = 32;
// The part of the reach within which groups come first: they are few, and mostly hold the nearest center.
constexpr double kNearPart = 0.25;

// The memory of one thread for a chunk.
template <class T>
struct GroupMemory {
    T* tile;                  // n_columns x lanes, and after it lanes x kStagingColumns
    T* point_tile;            // n_coordinates x lanes
    T* window;                // kGroupWindow
    T* group_scores;          // kMostPointRows x n_groups, in whole panels
    T* line;                  // n_columns
    std::uint64_t* chosen;    // n_groups x kGroupWords
    std::int32_t* rows;       // kGroupRows
    GroupSearch<T>* search;   // kGroupRows
    GroupScore<T>* later;     // kGroupRows x n_groups, at most
    T* scores;                // kGroupRows x kGroupListed
    std::int32_t* labels;     // kGroupRows x kGroupListed
    std::int64_t n_later;     // how many of these there are
    std::int64_t n_compared;  // grows by the number of points that rows were compared with
    std::int64_t n_listed;    // grows by the number of candidates
    std::int64_t n_settled;   // grows by the number of exact scores
    Poll poll;
};
// Points that rows are compared with at a time, and the rows: scores of at most twelve rows with 256 points.
constexpr std::int64_t kGroupPoints = 256, kMostPointRows = 12, kGroupWindow = kMostPointRows * kGroupPoints;

}  // namespace quickmeans
