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

// Numbers of a panel: two of them fit into half of a second-level cache of a megabyte.
constexpr std::int64_t kPanelSize = 1 << 15;
constexpr std::int64_t kLeastColumns = 32;  // half a row of registers for sums

// Copy n rows of `width` numbers, and of the zeros after them, between matrices with rows that are so far apart.
void copy_panel(const double* from, std::int64_t from_stride, std::int64_t n, std::int64_t width, double* to,
                std::int64_t to_stride) {
    for (std::int64_t i = 0; i < n; ++i) std::copy_n(from + i * from_stride, whole_vectors(width), to + i * to_stride);
}

// Columns of the n x m matrix A as a matrix of their own: A itself if these are all.
const double* panel_of(const double* A, std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t width,
                       std::vector<double, PageAllocator<double>>& memory) {
    if (width == m) return A;
    memory.resize(std::size_t(n * padded(width)));
    copy_panel(A + first, padded(m), n, width, memory.data(), padded(width));
    return memory.data();
}

}  // namespace

// body(first, width, own) for one panel of columns after the other, on threads; `own` is memory of the thread's own.
void Palm::for_each_panel(std::int64_t n_rows, std::int64_t width, double work, const PanelBody& body,
                          const Poll& poll) {
    const std::int64_t share = std::max(kPanelSize / n_rows / kLeastColumns, std::int64_t(1)) * kLeastColumns;
    const int n_threads = threads_for(work, options_.n_threads);
    panels_.resize(std::max(panels_.size(), std::size_t(n_threads)));
    for_each_chunk((width + share - 1) / share, n_threads,
                   [&](std::int64_t panel, int thread, const Poll& each) {
                       const std::int64_t first = panel * share;
                       body(first, std::min(share, width - first), panels_[std::size_t(thread)], each);
                       return true;
                   },
                   poll);
}

// out = S X, or S' X if transposed, for matrices with rows of padded(width) numbers.
SparseJob Palm::job_of(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out) const {
    const std::int64_t n = transposed ? S.n_columns : S.n_rows;
    out.resize(std::size_t(n * padded(width)));
    return {.n_rows = n,
            .start = (transposed ? S.column_start : S.row_start).data(),
            .index = (transposed ? S.row_by_column : S.column).data(),
            .values = (transposed ? S.value_by_column : S.values).data(),
            .X = X,
            .stride = padded(width),
            .out = out.data(),
            .first = 0,
            .end = whole_vectors(width)};
}

void Palm::times_panel(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out,
                       const Poll& poll) const {
    routines_->sparse_times(job_of(S, transposed, X, width, out), poll);
}

// cells_ = P S G - M by products with factors only: N L S G - H, then L' times that. Every panel of columns goes
// through all factors while it is in the cache.
void Palm::gradient_by_panels(std::size_t q, const Quadratic& at, const Entries& S, const Poll& poll) {
    const std::int64_t n = S.n_rows, m = S.n_columns;
    std::size_t n_entries = S.size();
    for (std::size_t f = 0; f < q; ++f) n_entries += 2 * factors_[f].size();
    cells_.resize(std::size_t(n * padded(m)));
    const auto body = [&](std::int64_t first, std::int64_t width, Panels& own, const Poll& each) {
        times_panel(S, false, panel_of(at.G, m, m, first, width, own.in), width, own.out, each);
        for (std::size_t f = q; f-- > 0;) {
            own.in.swap(own.out);
            times_panel(factors_[f], false, own.in.data(), width, own.out, each);
        }
        routines_->weigh_and_subtract(own.out.data(), weights_.data(), panel_of(at.H, K_, m, first, width, own.in), K_,
                                      width);
        for (std::size_t f = 0; f < q; ++f) {
            own.in.swap(own.out);
            times_panel(factors_[f], true, own.in.data(), width, own.out, each);
        }
        copy_panel(own.out.data(), padded(width), n, width, cells_.data() + first, padded(m));
    };
    for_each_panel(std::max({n, m, K_}), m, kWorkPerProduct * double(n_entries) * double(m), body, poll);
}

void Palm::times(const Entries& S, bool transposed, const double* X, std::int64_t width, Dense& out, const Poll& poll) {
    multiply(job_of(S, transposed, X, width, out), poll);
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

// The same for dense P and G: columns of s G are computed, turned into rows, and multiplied with rows of P, while they
// are in the cache.
void Palm::apply_by_panels(const Quadratic& at, const Entries& S, const Cells& s, Cells& out, const Poll& poll) {
    const std::int64_t n = S.n_rows, m = S.n_columns;
    const auto body = [&](std::int64_t first, std::int64_t width, Panels& own, const Poll& each) {
        const double* const G = panel_of(at.G, m, m, first, width, own.in);
        own.out.resize(std::size_t(n * padded(width)));
        routines_->sparse_times({n, S.row_start.data(), S.column.data(), s.data(), G, padded(width), own.out.data(), 0,
                                 whole_vectors(width)},
                                each);
        own.in.resize(std::size_t(width * padded(n)));
        routines_->transpose(own.out.data(), n, width, own.in.data());
        for (std::int64_t j = 0; j < width; ++j)
            for (auto a = std::size_t(S.column_start[std::size_t(first + j)]);
                 a < std::size_t(S.column_start[std::size_t(first + j) + 1]); ++a)
                out[std::size_t(S.by_column[a])] = routines_->inner_product(
                    at.P + S.row_by_column[a] * padded(n), own.in.data() + j * padded(n), whole_vectors(n));
    };
    for_each_panel(std::max(n, m), m, kWorkPerProduct * double(S.size()) * double(n + m), body, poll);
}

// out = P S G on the support, for the values s on it.
void Palm::apply(const Quadratic& at, const Entries& S, const Cells& s, Cells& out, const Poll& poll) {
    out.resize(S.size());
    if (at.P && at.G) {
        apply_by_panels(at, S, s, out, poll);
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
