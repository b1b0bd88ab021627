// The products of palm4MSA, and its least squares on a support.
#include <algorithm>

#include "palm.hpp"
#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {
namespace {

// Conjugate gradients end where a step would lower the objective by less than about this share of it.
constexpr double kSlightest = 1e-10;
// A multiply-add of a sparse product takes as long as this many of a product that fills the vectors (see work.hpp).
constexpr double kWorkPerProduct = 4;

}  // namespace

// out = S X, or S' X if transposed.
void Palm::times(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out, const Poll& poll) {
    const std::int64_t n = transposed ? S.n_columns : S.n_rows;
    out.resize(std::size_t(n * padded(width)));
    multiply({.n_rows = n,
              .start = (transposed ? S.column_start : S.row_start).data(),
              .index = (transposed ? S.row_by_column : S.column).data(),
              .values = (transposed ? S.value_by_column : S.values).data(),
              .X = X,
              .stride = padded(width),
              .out = out.data(),
              .first = 0,
              .end = whole_vectors(width)},
             poll);
}

void Palm::multiply(const SparseJob& job, const Poll& poll) {
    const std::int64_t width = job.end;
    const double work = kWorkPerProduct * double(job.start[job.n_rows]) * double(width);
    const int n_threads = threads_for(work, options_.n_threads);
    if (n_threads == 1) return routines_->sparse_times(job, poll);
    const std::int64_t share = (width / n_threads + 63) / 64 * 64;  // whole lines of the cache, and all registers
    for_each_chunk((width + share - 1) / share, n_threads,
                   [&](std::int64_t chunk, int, const Poll& each) {
                       SparseJob part = job;
                       part.first = chunk * share;
                       part.end = std::min(part.first + share, width);
                       routines_->sparse_times(part, each);
                       return true;
                   },
                   poll);
}

// out[e] = the product of row row[e] of A and row column[e] of B.
void Palm::dots(const Entries& S, const double* A, const double* B, std::int64_t length, Cells& out, const Poll& poll) {
    out.resize(S.size());
    const int n_threads = threads_for(kWorkPerProduct * double(S.size()) * double(length), options_.n_threads);
    const std::int64_t share = (S.n_rows + n_threads - 1) / n_threads;
    const auto part = [&](std::int64_t chunk, int, const Poll& each) {
        const Range rows{chunk * share, std::min(share, S.n_rows - chunk * share)};
        if (rows.count > 0) routines_->support_dots(S.support(), A, B, length, rows, out.data(), each);
        return true;
    };
    if (n_threads == 1)
        part(0, 0, poll);
    else
        for_each_chunk(n_threads, n_threads, part, poll);
}

// Steps of conjugate gradients on the support of S, preconditioned by the diagonal. If M - P S G is known on the
// support, S is the present factor, and its objective is known, too: with r = M - P S G it is
// |N^(1/2) U|^2 - <M, S> - <r, S>, and a step lowers it by the slope times the length.
Palm::Fit Palm::refine(const Quadratic& at, Entries& S, int n_steps, const Cells* residual, const Poll& poll) {
    const std::size_t E = S.size();
    Cells target, r, image, p(E), flatness(E), s = S.values;
    double product = 0;  // <M, S>
    if (residual) {
        r = *residual;
        product = total_ - objective_ - inner(s, r);
    } else {
        if (at.Lt)
            dots(S, at.Lt, at.Ht, K_, target, poll);
        else
            for (std::size_t e = 0; e < E; ++e) target.push_back(at.H[S.row[e] * padded(S.n_columns) + S.column[e]]);
        apply(at, S, s, image, poll);
        r = target;
        for (std::size_t e = 0; e < E; ++e) r[e] -= image[e];
        product = inner(s, target);
    }
    double slope = 0, value = total_ - product - inner(s, r);
    for (std::size_t e = 0; e < E; ++e) {
        flatness[e] = 1 / (at.row_curvature[std::size_t(S.row[e])] * at.column_curvature[std::size_t(S.column[e])]);
        p[e] = r[e] * flatness[e];
        slope += r[e] * p[e];
    }
    const auto size = std::int64_t(E);
    for (int step = 0; step < n_steps && slope > kSlightest * objective_; ++step) {
        apply(at, S, p, image, poll);
        const double bend = routines_->inner_product(p.data(), image.data(), size);
        if (!(bend > 0)) break;
        const double length = slope / bend;
        value -= slope * length;
        const double next =
            routines_->descend(size, length, p.data(), image.data(), flatness.data(), s.data(), r.data());
        for (std::size_t e = 0; e < E; ++e) p[e] = r[e] * flatness[e] + next / slope * p[e];
        slope = next;
    }
    const double rest = inner(s, r);
    product = residual ? total_ - value - rest : inner(s, target);
    if (n_steps > 0) S.set_values(std::move(s));
    return {product, product - rest};
}

// out = P S G on the support, for the values s on it.
void Palm::apply(const Quadratic& at, const Entries& S, const Cells& s, Cells& out, const Poll& poll) {
    out.resize(S.size());
    if (at.P && at.G) {
        square_.resize(std::size_t(S.n_rows * padded(S.n_columns)));
        turned_.resize(std::size_t(S.n_columns * padded(S.n_rows)));
        multiply({S.n_rows, S.row_start.data(), S.column.data(), s.data(), at.G, padded(S.n_columns), square_.data(), 0,
                  whole_vectors(S.n_columns)},
                 poll);
        routines_->transpose(square_.data(), S.n_rows, S.n_columns, turned_.data());
        dots(S, at.P, turned_.data(), S.n_rows, out, poll);
    } else if (at.P) {
        line_.assign(std::size_t(2 * padded(S.n_rows)), 0.0);
        routines_->left_on_support(S.support(), at.P, s.data(), line_.data(), out.data(), poll);
    } else if (at.G) {
        routines_->right_on_support(S.support(), weights_.data(), at.G, s.data(), out.data(), poll);
    } else {
        for (std::size_t e = 0; e < S.size(); ++e) out[e] = weights_[std::size_t(S.row[e])] * s[e];
    }
}

}  // namespace quickmeans
