// A k-means that looks for better optima: Lloyd's iteration with bounds, and moves of centers that pay.
//
// The price of a center is what its removal would add to the objective if its rows went to their second nearest center.
// The gain of a cluster is what two means of its own rows would save. A swap removes a cheap center and splits a
// cluster of larger gain. Everything is in float32, sums in float64; the number of threads changes no bit.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/types.hpp"
#include "moves.hpp"
#include "pages.hpp"

namespace quickmeans {

class Search {
  public:
    // The rows, n x n_columns and about their mean, and the weights must outlive the search. With `spherical` rows have
    // length one, and centers too.
    Search(const float* rows, std::int64_t n, std::int64_t n_columns, const double* weights, bool spherical,
           int n_threads, const InstructionSet& set, const Poll& poll);

    // Begin anew with these centers.
    void place(const float* centers, std::int64_t n_centers, const Poll& poll);
    // At most so many iterations of Lloyd; fewer if no label changes, or the squared shifts add up to tol or less, or,
    // with `until_empty`, if a cluster has no weight. Returns the number of iterations.
    std::int64_t iterate(std::int64_t most, double tol, bool until_empty, const Poll& poll);
    // At most so many swaps whose gain exceeds the price, no two of them next to each other. Returns their number.
    std::int64_t swap(std::int64_t most, const Poll& poll);
    // Split the clusters of the largest gains: so many more centers. Returns their number.
    std::int64_t grow(std::int64_t most, const Poll& poll);
    // Remove the centers of the least prices: so many fewer.
    void shrink(std::int64_t count, const Poll& poll);
    // Remember the clusters as they are, and go back to them.
    void keep() { kept_ = now_; }
    void go_back();

    std::int64_t n_rows() const { return n_; }
    std::int64_t n_columns() const { return n_columns_; }
    std::int64_t n_centers() const { return now_.n_centers; }
    const std::vector<std::int32_t>& labels() const { return now_.labels; }
    const std::vector<double>& cluster_weights() const { return now_.weights; }
    // The centers in float64.
    void means(double* out) const;
    double assigned() const { return now_.assigned; }
    double objective() const { return now_.objective; }
    bool converged() const { return now_.converged; }
    std::int64_t n_empty() const;
    // The objective after every assignment and every update of the last call of `iterate`.
    const std::vector<double>& history() const { return history_; }
    double work() const { return work_; }  // so far; see work.hpp
    double pass_work() const;              // of a few iterations: see kUnbounded

  private:
    static constexpr std::int64_t kMostChunkRows = 512;  // a chunk is a whole number of tiles
    // How the bounds of the rows of a cluster change: see set_steps.
    struct Step {
        float shift, near, reach, closest;
    };
    // Labels with bounds on distances, and centers that are the means of their rows.
    struct Clusters {
        std::int64_t n_centers = 0;
        std::vector<float> centers;  // n_centers x n_columns
        std::vector<double> sums;    // n_centers x n_columns
        std::vector<double> weights;
        std::vector<float> squares;  // |c|^2
        std::vector<std::int32_t> labels, seconds;
        std::vector<std::int32_t> summed;      // the labels that the sums are of
        bool bounded = false;                  // whether bounds are kept; else every row is compared in every iteration
        bool labelled = false, moved = false;  // whether rows have labels; whether the steps are still to be taken
        std::vector<float> upper, lower;       // bounds on the distances to the label and to all other centers
        std::vector<Step> steps;
        std::vector<std::int64_t> sizes;  // rows in each cluster
        std::vector<char> changed;        // clusters whose rows have changed since they were last summed
        std::vector<char> stale;          // clusters whose rows have changed since they were last split
        std::vector<double> gains;
        std::vector<float> pairs;  // the two means of each split
        std::vector<float>
            apart;  // n_centers x n_centers: lower bounds on the distances between centers, if there are few
        double assigned = 0, objective = 0;  // before and after the last update
        bool converged = false;
    };

    void require_labels() const;
    static float rounding_of(std::int64_t n_columns);
    RowsView view(const std::int64_t* index) const;
    std::int64_t n_chunks() const;
    Range chunk_of(std::int64_t c) const;
    void make_tiles(const Poll& poll);
    void pack();
    NearestJob<float> nearest_job(const std::int64_t* index, bool two);
    std::int64_t move_bounds(const Range& rows, std::int64_t* doubtful);
    void move_all_bounds(const Poll& poll);
    std::int64_t tighten(std::int64_t* doubtful, std::int64_t count, const Poll& poll);
    void compare(const std::int64_t* doubtful, std::int64_t count, float* memory, const Poll& poll);
    std::int64_t assign_chunk(std::int64_t c, int thread, const Poll& poll);
    std::int64_t assign(const Poll& poll);
    void exchange(std::int64_t n_changes, const Poll& poll);
    void add_totals(const ClusterTotals& part);
    double update(std::int64_t n_changes, const Poll& poll);
    void group(const Poll& poll);
    void measure_all(const Poll& poll);
    void measure(const std::vector<std::int64_t>& moved, const Poll& poll);
    void set_steps(const std::vector<float>& shift);
    void make_room_for_seconds();
    void find_seconds(const Poll& poll);
    void price(std::int64_t most, const Poll& poll);
    std::vector<char> widest(std::int64_t most) const;
    void split_all(const Poll& poll);
    void place_pair(const Swap& s, const float* pair);
    void split_some(const std::vector<char>& chosen, const Poll& poll);
    Receivers receivers() const;
    void set_center(std::int64_t k, const float* values);
    void resize(std::int64_t n_centers);
    void doubt(const std::vector<char>& clusters);
    void see_new(const std::vector<std::int64_t>& slots, const Poll& poll);
    bool few_centers() const;

    const float* rows_;
    std::int64_t n_, n_columns_;
    const double* weights_;
    bool spherical_;
    int n_threads_;
    const InstructionSet& set_;
    std::int64_t chunk_rows_;
    float rounding_;
    double scatter_ = 0;
    std::vector<float> norms_;                   // |x|^2
    std::vector<float, RawPages<float>> tiles_;  // the rows, where no bounds are kept
    Clusters now_, kept_;
    double work_ = 0;
    float largest_square_ = 0;  // of the centers
    std::vector<std::int64_t> order_, starts_;
    std::vector<std::uint16_t> changes_;   // rows with new labels, counted from the first of their chunk,
    std::vector<std::int64_t> n_changes_;  // so many for each chunk, from its first row's place on
    std::vector<double> partial_;          // of each block of changes: the sums and the weights of all clusters
    std::vector<std::int64_t> partial_sizes_;
    std::vector<std::vector<float>> memory_,
        largest_;  // per thread: for tiles; the largest upper bound of each cluster
    std::vector<float> panels_, offset_, best_, next_, first_, second_;
    std::vector<double> prices_, history_;
};

}  // namespace quickmeans
