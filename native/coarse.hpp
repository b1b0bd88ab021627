// Which lists are nearest to a query: a search among their centers, by way of groups of them if there are many.
#pragma once

#include <memory>

#include "scan.hpp"

namespace quickmeans {

class Coarse {
  public:
    // The rows of the last level are centers, whose ids are lists; those of a level before it have lists of the next
    // level as ids; the first level is one list. All levels compare queries, or, if there are directions, n_columns
    // numbers each, the coordinates of queries along them and a zero after these.
    Coarse(std::vector<std::shared_ptr<const RowLists>> levels, std::int64_t n_columns, std::vector<float> directions,
           const std::string& isa);

    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t n_levels() const { return std::int64_t(levels_.size()); }

    std::int64_t largest_list() const { return largest_list_; }

    // lists = for every query the best of the last level, counts.back() of them; -1 where there are fewer.
    void find(const float* queries, std::int64_t n, const std::vector<std::int64_t>& counts, std::int64_t* lists,
              int n_threads, const Poll& poll) const;

    // The first query that cannot be compared, or -1: one whose square is not a number below the limit.
    std::int64_t first_bad(const float* queries, std::int64_t n, double limit, const Poll& poll) const;

  private:
    std::vector<float> projected(const float* queries, std::int64_t n, int n_threads, const Poll& poll) const;

    std::vector<std::shared_ptr<const RowLists>> levels_;
    std::int64_t n_columns_, n_directions_, largest_list_;
    std::vector<float> directions_;
    const InstructionSet* set_;
};

}  // namespace quickmeans
