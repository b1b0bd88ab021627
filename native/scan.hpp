// Lists of rows that are kept elsewhere, and the nearest rows in some of them.
#pragma once

#include <string>
#include <vector>

#include "codes.hpp"
#include "dispatch.hpp"

namespace quickmeans {

class RowLists {
  public:
    // So many empty lists of rows of n_columns numbers; rows are compared by inner products or squared distances. If
    // wanted, and if the instruction set has them, codes are kept of all rows, a byte per number.
    RowLists(std::int64_t n_lists, std::int64_t n_columns, bool similarity, bool with_codes, const std::string& isa);

    // The named lists have these rows from now on. Their memory must stay as it is until the list gets others.
    void set(const std::int64_t* labels, const ScanList* rows, std::int64_t n, int n_threads, const Poll& poll);

    std::int64_t n_lists() const { return std::int64_t(lists_.size()); }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t largest_id() const;  // of all rows; -1 if there is none

    // Which lists queries look into; -1 is no list.
    struct Probes {
        const std::int64_t* lists;  // n_queries x n_probes, below n_lists()
        std::int64_t n_queries, n_probes;
    };
    // values, ids = the k nearest rows in these lists for every query, nearest first and ties to the lower id; infinity
    // and -1 where there are fewer. They do not depend on the other queries, nor on the number of threads.
    void search(const float* queries, const Probes& probes, std::int64_t k, float* values, std::int64_t* ids,
                int n_threads, const Poll& poll) const;

  private:
    struct Work;
    bool codes_pay(const Work& work, std::int64_t k) const;
    void encode(const ScanJob& job, std::int64_t n, int n_threads, const Poll& poll) const;
    void by_query(const Work& work, int n_threads, const Poll& poll) const;
    void by_block(const Work& work, std::int64_t step, int n_threads, const Poll& poll) const;
    void shared(Work work, int n_threads, const Poll& poll) const;
    void by_list(const Work& work, const Range& queries, int n_threads, const Poll& poll) const;
    void by_list(const Work& work, const Range& queries, const Range& ranks, int n_threads, const Poll& poll) const;
    void sort(const Work& work, int n_threads, const Poll& poll) const;

    std::vector<ScanList> lists_;
    std::vector<Codes> codes_;  // of the lists; empty if there are none
    std::int64_t n_columns_;
    bool similarity_;
    const InstructionSet* set_;
};

}  // namespace quickmeans
