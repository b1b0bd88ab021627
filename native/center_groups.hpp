// Groups of centers, and through them the neighbours of every center.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

// Centers in float32, with their offsets -|c|^2 / 2.
struct CentersView {
    const float* values;  // n x n_columns
    const float* offset;
    std::int64_t n, n_columns;
};

class CenterGroups {
  public:
    // So many centers, at most, are in the list of a center, itself first. Where rows have new labels, 98 in 100 of
    // these are among the 64 nearest centers of the old one (K = 4096 and 16384, text embeddings and word vectors).
    static constexpr std::int64_t kNear = 64;

    // Put the centers in groups: anew, or from the groups that were.
    void divide(const CentersView& centers, bool anew, const InstructionSet& set, int n_threads, const Poll& poll);
    // Find the lists of all centers, through groups near their own. Returns the sum of the squared distances of the
    // nearest neighbours.
    double find_neighbours(const CentersView& centers, const InstructionSet& set, int n_threads, const Poll& poll);
    // The nearest centers of n rows among those of their nearest groups, so many for each row. The job says which rows,
    // and gets the results.
    void label(const ListJob& results, std::int64_t n, std::int64_t n_chosen, const CentersView& centers,
               const InstructionSet& set, int n_threads, const Poll& poll);

    std::int64_t n_near() const { return n_near_; }
    const std::int32_t* near(std::int64_t k) const { return near_.data() + k * n_near_; }
    // The centers, group by group.
    const std::vector<std::int64_t>& by_group() const { return order_; }
    double work() const { return work_; }  // so far

  private:
    void choose(const CentersView& centers, const InstructionSet& set, int n_threads, const Poll& poll);
    void set_means(const CentersView& centers);
    void cut(const CentersView& centers, const Range& part, std::int64_t most, std::vector<std::int64_t>& begins);
    void even_out(const CentersView& centers);
    void choose_groups(const RowsView& rows, std::int64_t n, std::int64_t count, std::vector<std::int32_t>& chosen,
                       const InstructionSet& set, int n_threads, const Poll& poll) const;
    std::vector<std::int32_t> candidates(std::int64_t group) const;

    std::int64_t n_groups_ = 0, n_columns_ = 0, n_near_ = 0;
    std::vector<float> values_, offset_;  // of the groups: means of their centers
    std::vector<std::int32_t> group_of_;  // of every center
    std::vector<std::int64_t> starts_;    // where each group begins
    std::vector<std::int64_t> order_;     // in the centers by group
    std::vector<std::int32_t> members_;   // the same
    std::vector<std::int32_t> all_;       // the groups
    std::vector<std::int32_t> near_;      // n_centers x n_near
    double work_ = 0;
};

}  // namespace quickmeans
