// Centers in groups, made ready for the kernels of kernels/groups.hpp, and the loop over all rows.
#pragma once

#include <vector>

#include "dispatch.hpp"
#include "kernels/group_types.hpp"
#include "pages.hpp"

namespace quickmeans {

// How a search through groups went.
struct GroupCounts {
    std::int64_t n_compared = 0, n_listed = 0, n_settled = 0;
};

template <class T>
class Groups {
  public:
    // What the groups are made of. The centers must outlive the groups; the rest is copied.
    struct Source {
        std::int64_t n_centers, n_columns, n_directions, n_narrow, n_groups;
        const T* centers;             // n_centers x n_columns
        const double* center_offset;  // n_centers
        const double* mean;           // n_columns
        const T* directions;          // n_directions x n_columns
        const T* points;              // n_centers x (n_directions + 1), see kernels/groups.hpp
        const std::int32_t* labels;   // n_centers, below n_groups
        bool spherical;
    };
    Groups(const Source& source, const InstructionSet& set, const Poll& poll);

    std::int64_t n_centers() const { return n_centers_; }
    std::int64_t n_columns() const { return n_columns_; }
    double mean_square() const { return mean_square_; }  // of the distances of the points from their middles

    // A job that waits for its rows, results and reach.
    GroupJob<T> job() const;

    // Find the nearest centers of all rows of the job on at most so many threads. Returns -1, or the first row of the
    // first chunk that holds a row outside the limit.
    std::int64_t run(const GroupJob<T>& job, int n_threads, GroupCounts& counts, const Poll& poll) const;

  private:
    template <class U>
    using Table = std::vector<U, PageAllocator<U>>;
    void sort(const Source& source, const Poll& poll);
    void find_middles(const Source& source);
    void pack_first(const T* middles);

    const InstructionSet& set_;
    std::int64_t n_centers_, n_columns_, n_coordinates_, n_directions_, n_narrow_, n_groups_;
    bool spherical_;
    T limit_, scale_, largest_gain_ = 0;
    double mean_square_ = 0;
    const T* centers_;
    std::vector<T> mean_, center_offset_, gain_;
    std::vector<T> directions_, direction_offset_, groups_, group_offset_, first_groups_, first_offset_, radii_;
    std::vector<std::int64_t> starts_;
    Table<T> points_;
    std::vector<T> point_offset_, slack_;
    std::vector<std::int32_t> members_;
};

}  // namespace quickmeans
