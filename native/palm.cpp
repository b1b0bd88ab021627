#include "palm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/pacer.hpp"
#include "select.hpp"

namespace quickmeans {
namespace {

constexpr double kLongest = 1;         // step
constexpr double kAboveBound = 1.001;  // c over the bound that it must exceed
constexpr int kPowerSteps = 100;

double norm_of(const Entries& S) { return std::sqrt(inner(S.values, S.values)); }

// Non-negative values raised to at least 1e-12 of the largest, or ones if all of them are zero: divisions by curvatures
// stay finite, and entries with a curvature that small hardly change the objective.
void keep_away_from_zero(std::vector<double>& values) {
    const double least = 1e-12 * *std::max_element(values.begin(), values.end());
    for (double& x : values) x = std::max(x, least > 0 ? least : 1.0);
}

std::vector<double> diagonal(const double* A, std::int64_t n) {
    std::vector<double> result(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) result[std::size_t(i)] = A[i * padded(n) + i];
    return result;
}

// A bound of the norm of a symmetric matrix: the largest sum of a row.
double largest_row_sum(const double* A, std::int64_t n) {
    double most = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += std::fabs(A[i * padded(n) + j]);
        most = std::max(most, sum);
    }
    return most;
}

// The norm of a symmetric matrix without negative eigenvalues, by the power method from the vector x of the last call.
double spectral_norm(const double* A, std::int64_t n, std::vector<double>& x, const Poll& poll) {
    Pacer pacer{poll};
    if (x.empty()) x.assign(std::size_t(n), 1 / std::sqrt(double(n)));
    std::vector<double> y(static_cast<std::size_t>(n));
    double norm = 0;
    for (int step = 0; step < kPowerSteps; ++step) {
        std::fill(y.begin(), y.end(), 0.0);
        for (std::int64_t i = 0; i < n; ++i, pacer.did(n))
            for (std::int64_t j = 0; j < n; ++j) y[std::size_t(j)] += x[std::size_t(i)] * A[i * padded(n) + j];
        const double last = norm;
        norm = std::sqrt(inner(y, y));
        if (!(norm > 0) || std::fabs(norm - last) <= 1e-6 * norm) break;
        for (std::size_t i = 0; i < y.size(); ++i) x[i] = y[i] / norm;
    }
    if (!(norm > 0)) x.clear();
    return norm;
}

// out = sum over the lines of v_l times the outer product of line l with itself; S' diag(v) S for lines that are rows.
// The lower half is summed, since positions in a line ascend, and the upper half is its mirror.
void outer_products(const std::vector<std::int64_t>& start, const std::vector<std::int32_t>& index,
                    const std::vector<double>& values, const double* weights, std::int64_t n,
                    std::vector<double, PageAllocator<double>>& out, const Poll& poll) {
    Pacer pacer{poll};
    out.assign(std::size_t(n * padded(n)), 0.0);
    for (std::size_t line = 0; line + 1 < start.size(); ++line)
        for (auto e = std::size_t(start[line]); e < std::size_t(start[line + 1]); ++e) {
            double* const row = out.data() + index[e] * padded(n);
            const double value = (weights ? weights[line] : 1.0) * values[e];
            for (auto f = std::size_t(start[line]); f <= e; ++f) row[index[f]] += value * values[f];
            pacer.did(start[line + 1] - start[line]);
        }
    for (std::int64_t i = 0; i < n; ++i, pacer.did(n))
        for (std::int64_t j = 0; j < i; ++j) out[std::size_t(j * padded(n) + i)] = out[std::size_t(i * padded(n) + j)];
}

}  // namespace

Palm::Palm(const double* U, const double* weights, std::int64_t K, std::int64_t D, std::vector<Entries> factors,
           std::vector<FactorSet> sets, const PalmOptions& options, const Routines& routines)
    : K_(K),
      D_(D),
      weights_(weights, weights + K),
      U_(std::size_t(K * padded(D))),
      weighted_(U_.size()),
      weighted_t_(std::size_t(D * padded(K))),
      scale_(1),
      factors_(std::move(factors)),
      sets_(std::move(sets)),
      options_(options),
      routines_(&routines),
      steps_(factors_.size(), kLongest),
      pauses_(factors_.size()),
      P_(factors_.size()),
      Lt_(factors_.size()),
      left_vectors_(factors_.size()),
      right_vectors_(factors_.size()) {
    for (std::int64_t k = 0; k < K; ++k)
        for (std::int64_t d = 0; d < D; ++d) {
            const auto at = std::size_t(k * padded(D) + d);
            U_[at] = U[k * D + d];
            weighted_[at] = weights[k] * U_[at];
        }
    routines.transpose(weighted_.data(), K, D, weighted_t_.data());
    objective_ = total_ = inner(weighted_, U_);
    for (Entries& S : factors_)
        if (const double norm = norm_of(S); norm > 0) {
            S.scale(1 / norm);
            scale_ *= norm;
        }
}

double Palm::start(const Poll& poll) {
    const Entries& last = factors_.back();
    const std::int64_t stride = padded(D_);
    cells_.assign(std::size_t(last.n_rows * stride), 0.0);
    for (std::size_t e = 0; e < last.size(); ++e)
        cells_[std::size_t(last.row[e] * stride + last.column[e])] = last.values[e];
    for (std::size_t q = factors_.size() - 1; q-- > 0; cells_.swap(more_))
        times(factors_[q], false, cells_.data(), D_, more_, poll);
    double square = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
        const double* const v = cells_.data() + k * stride;
        square += weights_[std::size_t(k)] * std::inner_product(v, v + D_, v, 0.0);
    }
    double product = 0;
    for (std::int64_t k = 0; k < K_; ++k) {
        const double *const v = cells_.data() + k * stride, *const u = weighted_.data() + k * stride;
        product += std::inner_product(v, v + D_, u, 0.0);
    }
    if (square > 0) scale_ = product / square;
    objective_ = 0;
    for (std::int64_t k = 0; k < K_; ++k)
        for (std::int64_t d = 0; d < D_; ++d) {
            const auto at = std::size_t(k * stride + d);
            const double r = U_[at] - scale_ * cells_[at];
            objective_ += weights_[std::size_t(k)] * r * r;
        }
    return objective_;
}

double Palm::sweep(const ProjectFactor& project, const Poll& poll) {
    multiply_left(poll);
    Quadratic at{nullptr, nullptr, weighted_.data(), weighted_t_.data(), nullptr, {}, {}};
    for (std::size_t q = factors_.size(); q-- > 0;) {
        at.P = q > 0 ? P_[q].data() : nullptr;
        at.Lt = q > 0 ? Lt_[q].data() : nullptr;
        const Entries& S = factors_[q];
        at.row_curvature = at.P ? diagonal(at.P, S.n_rows) : weights_;
        at.column_curvature = at.G ? diagonal(at.G, S.n_columns) : Cells(std::size_t(S.n_columns), 1.0);
        keep_away_from_zero(at.row_curvature);
        keep_away_from_zero(at.column_curvature);
        options_.paper_steps ? paper_update(q, at, project, poll) : update(q, at, project, poll);
        if (q > 0) multiply_right(q, at, poll);
    }
    if (options_.once_per_sweep || options_.paper_steps) start(poll);
    return objective_;
}

// L' and P of every factor but the first.
void Palm::multiply_left(const Poll& poll) {
    for (std::size_t q = 0; q + 1 < factors_.size(); ++q) {
        const Entries& S = factors_[q];
        if (q == 0) {
            Lt_[1].assign(std::size_t(S.n_columns * padded(K_)), 0.0);
            for (std::size_t e = 0; e < S.size(); ++e)
                Lt_[1][std::size_t(S.column[e] * padded(K_) + S.row[e])] = S.values[e];
            outer_products(S.row_start, S.column, S.values, weights_.data(), S.n_columns, P_[1], poll);
            continue;
        }
        times(S, true, Lt_[q].data(), K_, Lt_[q + 1], poll);
        times(S, true, P_[q].data(), S.n_rows, square_, poll);
        turned_.resize(std::size_t(S.n_rows * padded(S.n_columns)));
        routines_->transpose(square_.data(), S.n_columns, S.n_rows, turned_.data());
        times(S, true, turned_.data(), S.n_columns, P_[q + 1], poll);
    }
}

// From the G and H of factor q to those of the factor before it.
void Palm::multiply_right(std::size_t q, Quadratic& at, const Poll& poll) {
    const Entries& S = factors_[q];
    times(S, false, at.Ht, K_, Ht_[1], poll);
    std::swap(Ht_[0], Ht_[1]);
    H_.resize(std::size_t(K_ * padded(S.n_rows)));
    routines_->transpose(Ht_[0].data(), S.n_rows, K_, H_.data());
    if (at.G) {
        times(S, false, at.G, S.n_columns, square_, poll);
        turned_.resize(std::size_t(S.n_columns * padded(S.n_rows)));
        routines_->transpose(square_.data(), S.n_rows, S.n_columns, turned_.data());
        times(S, false, turned_.data(), S.n_rows, G_[1], poll);
        std::swap(G_[0], G_[1]);
    } else {
        outer_products(S.column_start, S.row_by_column, S.value_by_column, nullptr, S.n_rows, G_[0], poll);
    }
    at.G = G_[0].data();
    at.H = H_.data();
    at.Ht = Ht_[0].data();
}

// A projected gradient step on factor q, or only a refinement on its support if that step fails.
void Palm::update(std::size_t q, const Quadratic& at, const ProjectFactor& project, const Poll& poll) {
    Entries S = factors_[q];
    S.scale(scale_);
    Pause& pause = pauses_[q];
    if (pause.sweeps_left > 0) {
        --pause.sweeps_left;
        accept(q, at, std::move(S), false, poll);
        return;
    }
    Entries next = stepped(q, at, S, project, poll);
    if (accept(q, at, std::move(next), false, poll)) {
        steps_[q] = std::min(2 * steps_[q], kLongest);
        pause.length = 0;
        return;
    }
    steps_[q] = steps_[q] > options_.shortest ? steps_[q] / 2 : kLongest;
    pause.extend(options_.longest_pause);
    accept(q, at, std::move(S), true, poll);
}

// The step of the paper's appendix, lines 7 to 9: S - lambda L' (lambda L S R - U) R' / c, projected, with norm one.
void Palm::paper_update(std::size_t q, const Quadratic& at, const ProjectFactor& project, const Poll& poll) {
    Entries& S = factors_[q];
    const double P = at.P ? spectral_norm(at.P, S.n_rows, left_vectors_[q], poll)
                          : *std::max_element(weights_.begin(), weights_.end());
    const double c =
        kAboveBound * scale_ * scale_ * P * (at.G ? spectral_norm(at.G, S.n_columns, right_vectors_[q], poll) : 1.0);
    if (!(c > 0)) return;
    Entries scaled = S;
    scaled.scale(scale_);
    gradient(q, at, scaled, poll);
    const Cells row(std::size_t(S.n_rows), -scale_ / c), ones(std::size_t(padded(S.n_columns)), 1.0);
    routines_->scale_cells(cells_.data(), row.data(), ones.data(), S.n_rows, S.n_columns);
    for (std::size_t e = 0; e < S.size(); ++e)
        cells_[std::size_t(S.row[e] * padded(S.n_columns) + S.column[e])] += S.values[e];
    Entries next = projected(q, Cells(row.size(), 1.0), ones, project, poll);
    const double norm = norm_of(next);
    if (!(norm > 0)) return;
    next.scale(1 / norm);
    if (!options_.once_per_sweep) {
        const Fit fit = refine(at, next, 0, nullptr, poll);
        if (fit.square > 0) scale_ = fit.inner / fit.square;
    }
    S = std::move(next);
}

// cells_ = P S G - M, by products with factors only.
void Palm::gradient(std::size_t q, const Quadratic& at, const Entries& S, const Poll& poll) {
    const std::int64_t n = S.n_rows, m = S.n_columns;
    if (at.G) return gradient_by_panels(q, at, S, poll);
    const double* M = at.H;
    for (std::size_t f = 0; f < q; ++f, square_.swap(more_), M = square_.data())
        times(factors_[f], true, M, m, more_, poll);
    cells_.resize(std::size_t(n * padded(m)));
    if (at.P) {
        times(S, true, at.P, n, turned_, poll);
        routines_->transpose(turned_.data(), m, n, cells_.data());
    } else {
        std::fill(cells_.begin(), cells_.end(), 0.0);
        for (std::size_t e = 0; e < S.size(); ++e)
            cells_[std::size_t(S.row[e] * padded(m) + S.column[e])] = weights_[std::size_t(S.row[e])] * S.values[e];
    }
    const Cells ones(std::size_t(n), 1.0);
    routines_->weigh_and_subtract(cells_.data(), ones.data(), M, n, m);
}

// D^(-1/2) times the projection of D^(1/2) S - t D^(-1/2) gradient. D has the curvature along every entry if the set
// restricts supports only; else it is one bound, since a set that restricts values is not invariant to scaling them.
Entries Palm::stepped(std::size_t q, const Quadratic& at, const Entries& S, const ProjectFactor& project,
                      const Poll& poll) {
    gradient(q, at, S, poll);
    own_residual_.resize(S.size());
    for (std::size_t e = 0; e < S.size(); ++e)
        own_residual_[e] = -cells_[std::size_t(S.row[e] * padded(S.n_columns) + S.column[e])];
    Cells row = at.row_curvature, column = at.column_curvature;
    if (!sets_[q].of_supports) {
        const double P = at.P ? largest_row_sum(at.P, S.n_rows) : *std::max_element(weights_.begin(), weights_.end());
        const double bound = P * (at.G ? largest_row_sum(at.G, S.n_columns) : 1.0);
        std::fill(row.begin(), row.end(), std::max(bound, std::numeric_limits<double>::min()));
        std::fill(column.begin(), column.end(), 1.0);
    }
    Cells inverse_row = row, inverse_column(std::size_t(padded(S.n_columns)));
    for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = std::sqrt(row[i]);
        inverse_row[i] = -steps_[q] / row[i];
    }
    for (std::size_t j = 0; j < column.size(); ++j) {
        column[j] = std::sqrt(column[j]);
        inverse_column[j] = 1 / column[j];
    }
    routines_->scale_cells(cells_.data(), inverse_row.data(), inverse_column.data(), S.n_rows, S.n_columns);
    for (std::size_t e = 0; e < S.size(); ++e) {
        const auto i = std::size_t(S.row[e]), j = std::size_t(S.column[e]);
        cells_[i * std::size_t(padded(S.n_columns)) + j] += row[i] * column[j] * S.values[e];
    }
    return projected(q, row, column, project, poll);
}

// The projection of cells_, with its entries divided by the roots of their row and column.
Entries Palm::projected(std::size_t q, const Cells& row_root, const Cells& column_root, const ProjectFactor& project,
                        const Poll& poll) {
    const std::int64_t n = factors_[q].n_rows, m = factors_[q].n_columns;
    const FactorSet& set = sets_[q];
    if (set.is_counted()) {
        kept_.resize(std::size_t(n * m));
        const auto choose = set.greedy ? match_largest : mark_largest;
        choose(cells_.data(), n, m, padded(m), std::min(set.per_row, m), std::min(set.per_column, n), kept_.data(),
               poll);
    } else {
        more_.resize(std::size_t(n * m));
        for (std::int64_t i = 0; i < n; ++i) std::copy_n(cells_.data() + i * padded(m), m, more_.data() + i * m);
        project(q, n, m, more_.data());
    }
    Entries S =
        set.is_counted() ? Entries(cells_.data(), n, m, padded(m), kept_.data()) : Entries(more_.data(), n, m, m);
    Cells values(S.size());
    for (std::size_t e = 0; e < S.size(); ++e)
        values[e] = S.values[e] / (row_root[std::size_t(S.row[e])] * column_root[std::size_t(S.column[e])]);
    S.set_values(std::move(values));
    return S;
}

// Refine S and let it replace factor q, unless that raises the objective; returns whether it was replaced.
bool Palm::accept(std::size_t q, const Quadratic& at, Entries S, bool is_present, const Poll& poll) {
    const int n_steps = sets_[q].of_supports ? options_.n_refinements : 0;
    const Fit fit = refine(at, S, n_steps, is_present ? &own_residual_ : nullptr, poll);
    const double factor = options_.once_per_sweep || !(fit.square > 0) ? 1.0 : fit.inner / fit.square;
    const double value = std::max(total_ - 2 * factor * fit.inner + factor * factor * fit.square, 0.0);
    const double norm = norm_of(S);
    if (norm == 0 || !(value <= objective_)) return false;
    S.scale(1 / norm);
    factors_[q] = std::move(S);
    scale_ = factor * norm;
    objective_ = value;
    return true;
}

}  // namespace quickmeans
