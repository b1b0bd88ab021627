// Lloyd's iteration over rows in CSR form. Scores are of type T, sums float64; the number of threads changes no bit.
//
// Centers are kept about the mean m of the rows, c_k = u_k - m, so the score of a row x is <x, c_k> - |c_k|^2 / 2 -
// <m, c_k>. Rows whose label is proven by bounds (Hamerly, 2010) are skipped, and sums are corrected by the rows that
// have changed their cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "csr.hpp"

namespace quickmeans {

// What is known of the rows; all must outlive the clusters.
struct CsrProblem {
    CsrView rows;
    const double* mean;         // n_columns, zero if spherical
    const double* norms;        // |x - mean|^2, one per row
    const double* weights;      // one per row, or null for ones
    const double* sum_weights;  // what a row is multiplied with in the sum of its cluster; or null for ones
    double scatter;             // the weighted sum of the norms, or the sum of the weights if spherical
    bool spherical;             // whether directions are compared: centers have length one
};

template <class T>
class CsrClusters {
  public:
    // The centers, n_centers x n_columns, are about the mean.
    CsrClusters(const CsrProblem& problem, const double* centers, std::int64_t n_centers, const InstructionSet& set,
                int n_threads, const Poll& poll);

    // Assign every row, fill empty clusters, and move the centers to their means. If that throws, the centers are those
    // before. Converged if no label has changed or the squared shifts add up to tol or less. Returns -1, or the number
    // of the first row whose scores are not finite.
    std::int64_t iterate(double tol, const Poll& poll);

    std::int64_t n_centers() const { return K_; }
    std::int64_t n_columns() const { return D_; }
    double assigned() const { return assigned_; }    // the objective after the last assignment
    double objective() const { return objective_; }  // and after the update
    bool converged() const { return converged_; }
    std::int64_t n_compared() const { return n_compared_; }  // rows that the last iteration compared with all centers
    // The centers in float64.
    void centers(double* out) const;

  private:
    // What the update adds up for one center: squared shift, |c|^2, <m, c>, and <c, centered sum> before and after.
    struct Tally {
        double shift = 0, square = 0, along = 0, before = 0, after = 0;
        void add(const Tally& other) {
            shift += other.shift;
            square += other.square;
            along += other.along;
            before += other.before;
            after += other.after;
        }
    };
    // Rows to be added to the sums of clusters, times factors of 1 or -1.
    struct Members {
        std::vector<std::int32_t> clusters;
        std::vector<std::int64_t> rows;
        std::vector<double> factors;
        void push(std::int32_t cluster, std::int64_t row, double factor) {
            clusters.push_back(cluster);
            rows.push_back(row);
            factors.push_back(factor);
        }
    };

    double own_score(std::int64_t row) const;
    double square_of(std::int64_t row, double score) const;
    bool is_proven(std::int64_t row, bool tighten, double slack);
    void assign(const Poll& poll);
    void move_bounds(const std::vector<double>& shift);
    void add(const Members& members, const Poll& poll);
    void sum_again(const std::vector<char>& clusters, const Poll& poll);
    std::int64_t exchange(const Poll& poll);
    void lower_to(std::int64_t row, std::vector<double>& distances, const Poll& poll) const;
    std::int64_t refill(const Poll& poll);
    void move_centers(const std::vector<double>& divisors, const Range& columns, Tally* tallies);
    double update();
    double current_objective() const;
    void set_offset(std::int64_t k) { table_.offset()[k] = p_.spherical ? T(0) : T(-(squares_[k] / 2 + along_[k])); }
    double weight(std::int64_t row) const { return p_.weights ? p_.weights[row] : 1.0; }
    double sum_weight(std::int64_t row) const { return p_.sum_weights ? p_.sum_weights[row] : 1.0; }

    CsrProblem p_;
    std::int64_t n_, D_, K_;
    const InstructionSet& set_;
    int n_threads_;
    double entries_;
    double rounding_ = 0, mean_square_ = 0;
    CsrCenters<T> table_;
    std::vector<double, PageAllocator<double>> sums_;
    std::vector<double> weights_;          // of clusters
    std::vector<double> squares_, along_;  // |c|^2 and <m, c>
    std::vector<double> gains_;            // what each cluster takes off the scatter
    std::vector<std::int64_t> sizes_;      // rows with weight
    std::vector<char> changed_;            // clusters whose rows have changed since the last update
    std::vector<std::int32_t> labels_;     // -1 before the first iteration
    std::vector<std::int32_t> summed_;     // the labels that the sums are of; empty while they are not sound
    std::vector<T> upper_, lower_;         // bounds on the distances to the label and to all other centers
    std::vector<T> best_, second_;         // scores of the rows that were compared
    double assigned_ = 0, objective_ = 0;
    bool converged_ = false;
    std::int64_t n_compared_ = 0, bad_row_ = -1;
};

}  // namespace quickmeans
