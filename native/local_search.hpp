// k-means with many centers: every row is compared with the centers near its own only.
//
// A row's next center is mostly a neighbour of its present one. Rows are grouped by their labels, and those of a
// cluster are compared with the center's neighbours, kNear of them: an iteration costs n x kNear x D, whatever the
// number of centers. Neighbours are found through groups of centers, about 2 sqrt(K) of them, and found again as
// centers move. Then the rows that are farthest from their centers, which are most of those that a nearer center has
// missed, are compared with the centers of many groups. Means are summed in float64 from the rows of each cluster, so
// no sums are kept. Priced swaps are those of search.hpp. The number of threads changes no bit.
#pragma once

#include <cstdint>
#include <vector>

#include "center_groups.hpp"
#include "kernels/types.hpp"
#include "moves.hpp"

namespace quickmeans {

class LocalSearch {
  public:
    // The rows, n x n_columns, and the weights must outlive the search. With `spherical` rows have length one, and
    // centers too.
    LocalSearch(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, bool spherical,
                int n_threads, const InstructionSet& set, const Poll& poll);

    // Begin anew with these centers. Every row chooses a group, and a center of that group.
    void place(const float* centers, std::int64_t n_centers, const Poll& poll);
    // As in search.hpp.
    std::int64_t iterate(std::int64_t most, double tol, bool until_empty, const Poll& poll);
    std::int64_t swap(std::int64_t most, const Poll& poll);
    // Compare all rows once more; the centers stay.
    void label(const Poll& poll);
    void keep();
    void go_back();

    std::int64_t n_rows() const { return n_; }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t n_centers() const { return n_centers_; }
    const std::vector<std::int32_t>& labels() const { return labels_; }
    const std::vector<double>& cluster_weights() const { return weights_in_; }
    void means(double* out) const;
    double assigned() const { return assigned_; }
    double objective() const { return objective_; }
    bool converged() const { return converged_; }
    std::int64_t n_empty() const;
    const std::vector<double>& history() const { return history_; }
    double work() const { return work_; }
    double pass_work() const;
    std::int64_t n_near() const { return groups_.n_near(); }

  private:
    struct Kept {
        std::vector<float> centers;
        std::vector<std::int32_t> labels;
        double objective = 0;
    };

    RowsView view(const std::int64_t* index) const;
    CentersView centers() const;
    double set_center(std::int64_t k, const double* values);
    void group(const Poll& poll);
    void find_neighbours(const Poll& poll);
    bool follow(const Poll& poll);
    std::int64_t doubt(const Poll& poll);
    std::vector<std::int64_t> farthest() const;
    std::int64_t assign(const Poll& poll);
    ListJob results(const std::int64_t* index);
    bool is_near_moved(std::int64_t cluster) const;
    double update(const Poll& poll);
    void price();
    SplitJob split_job();
    void split_all(const Poll& poll);
    void leave(const std::vector<Swap>& swaps);

    const float* rows_;
    std::int64_t n_, n_columns_;
    const double* weights_;
    bool spherical_;
    int n_threads_;
    const InstructionSet& set_;
    double scatter_ = 0;
    std::int64_t n_centers_ = 0;
    std::vector<float> centers_;  // n_centers x n_columns
    std::vector<float> offset_;   // -|c|^2 / 2
    std::vector<double> weights_in_, explained_, gains_, prices_;
    std::vector<char> changed_;  // clusters whose rows have changed since they were last summed,
    std::vector<char> stale_;    // and since they were last split
    std::vector<char> moved_;    // centers that have moved since rows were last compared with them
    std::vector<std::int32_t> labels_, seconds_;
    std::vector<float> best_, next_;  // the scores of both
    std::vector<float> norms_;        // |x|^2
    std::vector<std::uint8_t> rest_;  // for so many times a row that was looked at more widely is not in doubt
    std::vector<std::int64_t> order_, starts_;
    bool is_fresh_ = false;     // whether no row has been in doubt yet
    bool is_compared_ = false;  // whether scores and weights are those of the labels
    bool is_grouped_ = false;   // whether `order_` is that of the labels
    CenterGroups groups_;
    double gaps_ = 0;   // the squared distances of nearest neighbours when they were found,
    double drift_ = 0;  // and of the ways that centers have moved since
    Kept kept_;
    double assigned_ = 0, objective_ = 0, work_ = 0;
    bool converged_ = false;
    std::vector<double> history_;
};

}  // namespace quickmeans
