// palm4MSA (the paper's Algorithm 2): factors of unit norm, their scale, and sweeps over them.
//
//     minimise  |N^(1/2) (U - scale S_1 ... S_Q)|^2   with every S_q in its set.
//
// For the factor right of L and left of R the objective is  |N^(1/2) U|^2 - 2 <M, S> + <S, P S G>  with  P = L' N L,
// G = R R', M = L' H and H = N U R'. A sweep computes L' and P of all factors from left to right, then updates the
// factors from right to left, with G and H. All factors are kept by their non-zeros.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "entries.hpp"
#include "pages.hpp"

namespace quickmeans {

// The constraint set of a factor: how many of the largest entries of every row and column are kept, in their union or,
// if `greedy`, at most. Without such numbers the caller projects.
struct FactorSet {
    std::int64_t per_row, per_column;
    bool greedy;
    bool of_supports;  // the values on a support are free

    bool is_counted() const { return per_row > 0 || per_column > 0; }
};

struct PalmOptions {
    bool paper_steps;     // one step of length 1 / c per factor, as in the paper's appendix
    bool once_per_sweep;  // the scale is set after every sweep, not after every factor
    double shortest;      // step that is tried; with 1, the longest, an entry goes to its own minimum
    int longest_pause;    // sweeps
    int n_refinements;    // steps of conjugate gradients on a support
    int n_threads;
};

// Replace the n x m matrix M by its projection on the set of factor q.
using ProjectFactor = std::function<void(std::size_t q, std::int64_t n, std::int64_t m, double* M)>;

// The inner product of two vectors.
template <class Vector>
double inner(const Vector& a, const Vector& b) {  // in four sums, so that no addition waits for the last
    double sums[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= a.size(); i += 4)
        for (std::size_t l = 0; l < 4; ++l) sums[l] += a[i + l] * b[i + l];
    for (; i < a.size(); ++i) sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

class Palm {
  public:
    Palm(const double* U, const double* weights, std::int64_t K, std::int64_t D, std::vector<Entries> factors,
         std::vector<FactorSet> sets, const PalmOptions& options, const Routines& routines);

    const std::vector<Entries>& factors() const { return factors_; }
    double scale() const { return scale_; }
    double total() const { return total_; }  // the objective without factors

    // Set the best scale for the present factors, and return the objective.
    double start(const Poll& poll);
    // Update every factor once, and return the objective.
    double sweep(const ProjectFactor& project, const Poll& poll);

  private:
    using Cells = std::vector<double>;
    using Dense = std::vector<double, PageAllocator<double>>;  // a matrix with padded rows
    // After a step that failed, or left the support as it was, a factor keeps its support for some sweeps.
    struct Pause {
        int length = 0, sweeps_left = 0;
        void extend(int longest) { length = sweeps_left = std::min(2 * length + 1, longest); }
    };
    // The objective as a function of one factor. Null stands for P = N and for G = I.
    struct Quadratic {
        const double *P, *G, *H, *Ht, *Lt;  // Ht and Lt are the transposes of H and L
        Cells row_curvature, column_curvature;
    };
    struct Fit {
        double inner, square;  // <M, S> and <S, P S G>
    };

    struct Panels {
        Dense in, out;
    };

    std::int64_t K_, D_;
    Cells weights_;
    Dense U_, weighted_, weighted_t_;
    double total_, scale_, objective_;
    std::vector<Entries> factors_;
    std::vector<FactorSet> sets_;
    PalmOptions options_;
    const Routines* routines_;
    std::vector<double> steps_;
    std::vector<Pause> pauses_;
    std::vector<Dense> P_, Lt_;
    std::vector<Cells> left_vectors_, right_vectors_;  // leading directions of P and G, for the paper's steps
    Dense G_[2], H_, Ht_[2];                           // of the present factor, and of the next
    Dense cells_, more_, square_, turned_, line_;
    std::vector<Panels> panels_;  // one per thread
    Cells own_residual_;          // M - P S G of the present factor on its support
    std::vector<unsigned char> kept_;

    void multiply_left(const Poll& poll);
    void multiply_right(std::size_t q, Quadratic& at, const Poll& poll);
    using PanelBody = std::function<void(std::int64_t first, std::int64_t width, Panels& own, const Poll& poll)>;

    void for_each_panel(std::int64_t n_rows, std::int64_t width, double work, const PanelBody& body, const Poll& poll);
    SparseJob job_of(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out) const;
    void times_panel(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out,
                     const Poll& poll) const;
    void gradient_by_panels(std::size_t q, const Quadratic& at, const Entries& S, const Poll& poll);
    void times(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out, const Poll& poll);
    void multiply(const SparseJob& job, const Poll& poll);
    void update(std::size_t q, const Quadratic& at, const ProjectFactor& project, const Poll& poll);
    void paper_update(std::size_t q, const Quadratic& at, const ProjectFactor& project, const Poll& poll);
    void gradient(std::size_t q, const Quadratic& at, const Entries& S, const Poll& poll);
    Entries stepped(std::size_t q, const Quadratic& at, const Entries& S, const ProjectFactor& project,
                    const Poll& poll);
    Entries projected(std::size_t q, const Cells& row_root, const Cells& column_root, const ProjectFactor& project,
                      const Poll& poll);
    bool accept(std::size_t q, const Quadratic& at, Entries S, bool is_present, const Poll& poll);
    Fit refine(const Quadratic& at, Entries& S, int n_steps, const Cells* residual, const Poll& poll);
    void apply(const Quadratic& at, const Entries& S, const Cells& s, Cells& out, const Poll& poll);
    void apply_by_panels(const Quadratic& at, const Entries& S, const Cells& s, Cells& out, const Poll& poll);
    void dots(const Entries& S, const double* A, const double* B, std::int64_t length, Cells& out, const Poll& poll);
};

}  // namespace quickmeans
