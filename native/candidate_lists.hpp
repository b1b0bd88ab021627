// The nearest centers of rows that have a label: among all centers if there are few, else among those near the label.
#pragma once

#include <cstdint>
#include <vector>

#include "center_groups.hpp"
#include "kernels/types.hpp"

namespace quickmeans {

class CandidateLists {
  public:
    // A copy is made of the centers, n x n_columns.
    CandidateLists(const float* centers, std::int64_t n, std::int64_t n_columns, int n_threads,
                   const InstructionSet& set, const Poll& poll);

    // The m nearest centers of every row, n x n_columns, its label always among them, and the squared distances; both n
    // x m, in no order. A list that has fewer is filled up with -1 and infinity. The number of threads changes no bit.
    void list(const float* rows, std::int64_t n, const std::int32_t* labels, std::int64_t m, std::int32_t* candidates,
              float* squares, const Poll& poll) const;

    std::int64_t n_centers() const { return n_; }
    std::int64_t n_columns() const { return n_columns_; }

  private:
    std::int64_t n_, n_columns_;
    int n_threads_;
    const InstructionSet& set_;
    std::vector<float> centers_, offset_;
    std::vector<std::int32_t> all_;  // every center, if there are few
    CenterGroups groups_;            // else
};

}  // namespace quickmeans
