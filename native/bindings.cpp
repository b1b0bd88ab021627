// The Python face of the native code. Arguments are checked in Python; here only what memory safety needs.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "arrays.hpp"
#include "bindings/bindings.hpp"
#include "dispatch.hpp"
#include "gaussian.hpp"
#include "masked.hpp"
#include "parallel.hpp"
#include "product.hpp"
#include "select.hpp"
#include "sparse.hpp"

namespace quickmeans {
namespace {

// Compressed sparse rows (n_columns, indptr, indices, values), or the values of a dense factor alone.
template <class T>
FactorSource<T> source_of(nb::handle factor) {
    if (!nb::isinstance<nb::tuple>(factor)) {
        const auto dense = nb::cast<Matrix<T>>(factor, false);
        return {std::int64_t(dense.shape(0)), std::int64_t(dense.shape(1)), nullptr, nullptr, dense.data()};
    }
    const nb::tuple parts = nb::borrow<nb::tuple>(factor);
    require(parts.size() == 4, "a sparse factor has four parts");
    const auto n_columns = nb::cast<std::int64_t>(parts[0]);
    const auto indptr = nb::cast<Vector<std::int64_t>>(parts[1], false);
    const auto indices = nb::cast<Vector<std::int32_t>>(parts[2], false);
    const auto values = nb::cast<Vector<T>>(parts[3], false);
    require(n_columns > 0 && n_columns < (std::int64_t(1) << 31), "number of columns out of range");
    require(indptr.size() > 0 && indptr.data()[0] == 0 && indices.size() == values.size() &&
                indptr.data()[indptr.size() - 1] == std::int64_t(values.size()),
            "inconsistent sparse factor");
    for (std::size_t i = 1; i < indptr.size(); ++i)
        require(indptr.data()[i - 1] <= indptr.data()[i], "inconsistent sparse factor");
    for (std::size_t e = 0; e < indices.size(); ++e)
        require(indices.data()[e] >= 0 && indices.data()[e] < n_columns, "column out of range");
    return {std::int64_t(indptr.size()) - 1, n_columns, indptr.data(), indices.data(), values.data()};
}

template <class T>
std::int64_t run(const Product<T>& product, const Job<T>& job, int n_threads, double growth = 1) {
    nb::gil_scoped_release release;
    return product.run(job, growth, n_threads, Interruptible());
}

constexpr std::int64_t kRows = 8;  // problems that a thread takes at a time

// Least squares on supports; see kernels/types.hpp for what is in and out.
void fit_supports(Matrix<double> gram, Matrix<double> targets, Vector<double> weights, Vector<std::int64_t> drop,
                  Cells<std::uint8_t> support, Cells<double> values, std::optional<Cells<double>> prices, int n_threads,
                  const std::string& isa) {
    const std::size_t n = targets.shape(0), r = targets.shape(1);
    const auto fits = [&](const auto& cells) { return cells.shape(0) == n && cells.shape(1) == r; };
    require(gram.shape(0) == r && gram.shape(1) == r, "wrong shape of gram");
    require(weights.size() == n && drop.size() == n, "wrong size of weights or drop");
    require(fits(support) && fits(values) && (!prices || fits(*prices)), "wrong shape of support, values or prices");
    const SupportJob job{std::int64_t(n), std::int64_t(r), gram.data(),
                         targets.data(),  weights.data(),  drop.data(),
                         support.data(),  values.data(),   prices ? prices->data() : nullptr};
    const FitRows fit_rows = find_routines(isa).fit_rows;
    nb::gil_scoped_release release;
    const std::size_t count = std::size_t(std::max(n_threads, 1)), longest = r + kSupportPadding;
    std::vector<std::vector<double>> scratch(count, std::vector<double>(longest * (longest + 2 * kPivots)));
    std::vector<std::vector<std::int32_t>> order(count, std::vector<std::int32_t>(r));
    const auto chunk = [&](std::int64_t i, int thread) {
        const Range rows{i * kRows, std::min(kRows, job.n_rows - i * kRows)};
        fit_rows(job, rows, scratch[std::size_t(thread)].data(), order[std::size_t(thread)].data());
        return true;
    };
    for_each_chunk((job.n_rows + kRows - 1) / kRows, n_threads, chunk, Interruptible());
}

// sums[k] += the weighted rows of cluster k; see kernels/sums.hpp.
void add_members(const AnyArray& x, Vector<std::int64_t> members, Vector<std::int64_t> starts,
                 const std::optional<Vector<double>>& weights, Cells<double> sums, int n_threads,
                 const std::string& isa) {
    const std::int64_t n_clusters = std::int64_t(sums.shape(0)), n_columns = std::int64_t(sums.shape(1));
    SumJob job{view_of(x, n_columns), members.data(), starts.data(), weights ? weights->data() : nullptr, sums.data()};
    require(std::int64_t(starts.size()) == n_clusters + 1 && starts.data()[0] == 0 &&
                starts.data()[n_clusters] == std::int64_t(members.size()),
            "wrong starts");
    for (std::int64_t k = 0; k < n_clusters; ++k) require(starts.data()[k] <= starts.data()[k + 1], "wrong starts");
    for (std::size_t m = 0; m < members.size(); ++m)
        require(members.data()[m] >= 0 && members.data()[m] < job.rows.n_rows, "member out of range");
    require(!weights || weights->size() == members.size(), "wrong size of weights");
    const AddMembers add = find_routines(isa).add_members;
    constexpr std::int64_t kColumns = 1024;
    const std::int64_t n_blocks = (n_columns + kColumns - 1) / kColumns;
    if (double(members.size()) * double(n_columns) < 1e6) n_threads = 1;
    nb::gil_scoped_release release;
    const auto chunk = [&](std::int64_t i, int) {
        const std::int64_t first = i % n_blocks * kColumns;
        add(job, i / n_blocks, {first, std::min(kColumns, n_columns - first)});
        return true;
    };
    for_each_chunk(n_clusters * n_blocks, n_threads, chunk, Interruptible());
}

// Sums of d = x - shift and of d^2 over the rows, in as many blocks as `sums` has rows.
void moments(const AnyArray& x, const std::optional<Vector<double>>& weights, Vector<double> shift, Cells<double> sums,
             Cells<double> squares, int n_threads, const std::string& isa) {
    const std::int64_t n_blocks = std::int64_t(sums.shape(0)), n_columns = std::int64_t(sums.shape(1));
    const MomentJob job{view_of(x, n_columns), weights ? weights->data() : nullptr, shift.data(), sums.data(),
                        squares.data()};
    const std::int64_t n = job.rows.n_rows;
    require(n_blocks > 0 && std::int64_t(shift.size()) == n_columns, "wrong size of shift");
    require(squares.shape(0) == sums.shape(0) && squares.shape(1) == sums.shape(1), "wrong shape of squares");
    require(!weights || std::int64_t(weights->size()) == n, "wrong size of weights");
    const AddBlockMoments add = find_routines(isa).moments;
    if (double(n) * double(n_columns) < 1e6) n_threads = 1;
    nb::gil_scoped_release release;
    const auto chunk = [&](std::int64_t block, int) {
        const std::int64_t first = n / n_blocks * block + std::min(block, n % n_blocks);
        add(job, block, {first, n / n_blocks + (block < n % n_blocks)});
        return true;
    };
    for_each_chunk(n_blocks, n_threads, chunk, Interruptible());
}

// Starting points by k-means++; see kernels/seeding.hpp. Returns how many there are.
std::int64_t seed(Matrix<float> points, Vector<float> residuals, Vector<double> weights, std::int64_t first,
                  Matrix<double> uniforms, Line<std::int64_t> chosen, const std::string& isa) {
    const std::size_t n = points.shape(1);
    require(residuals.size() == n && weights.size() == n, "wrong size of residuals or weights");
    require(uniforms.shape(0) == chosen.size() && uniforms.shape(1) > 0 && chosen.size() > 0 && first >= 0 &&
                std::size_t(first) < n,
            "wrong uniforms or first");
    const SeedJob job{std::int64_t(n),
                      std::int64_t(points.shape(0)),
                      points.data(),
                      residuals.data(),
                      weights.data(),
                      std::int64_t(chosen.size()),
                      std::int64_t(uniforms.shape(1)),
                      first,
                      uniforms.data(),
                      chosen.data()};
    nb::gil_scoped_release release;
    std::vector<float> distances(3 * n);
    std::vector<double> scratch(3 * (n / 1024 + 1));
    return find_routines(isa).seed(job, &distances[0], &distances[n], &distances[2 * n], scratch.data());
}

// A few steps of least squares for a factor S on its support; see kernels/refine.hpp. Returns <M, S>, <S, P S G>.
std::pair<double, double> refine(Entries& S, std::optional<Matrix<double>> P, Vector<double> diagonal,
                                 std::optional<Matrix<double>> G, Matrix<double> M, Vector<double> row_curvature,
                                 Vector<double> column_curvature, int n_steps) {
    const std::size_t n = std::size_t(S.n_rows), m = std::size_t(S.n_columns), count = S.size();
    require(S.by_column.size() == count, "too many entries");
    require(M.shape(0) == n && M.shape(1) == m, "wrong shape of M");
    require(!P || (P->shape(0) == n && P->shape(1) == n), "wrong shape of P");
    require(!G || (G->shape(0) == m && G->shape(1) == m), "wrong shape of G");
    require(row_curvature.size() == n && column_curvature.size() == m, "wrong size of the curvatures");
    require(diagonal.size() == n || P, "wrong size of the diagonal");
    nb::gil_scoped_release release;
    std::vector<double> target(count), curvature(count), values = S.values, work(3 * count),
                                                         dense(P && G ? 2 * n * m : 0);
    for (std::size_t e = 0; e < count; ++e) {
        const std::size_t i = std::size_t(S.row[e]), j = std::size_t(S.column[e]);
        target[e] = M.data()[i * m + j];
        curvature[e] = row_curvature.data()[i] * column_curvature.data()[j];
    }
    const RefineJob job{S.n_rows,
                        S.n_columns,
                        std::int64_t(count),
                        P ? P->data() : nullptr,
                        diagonal.data(),
                        G ? G->data() : nullptr,
                        S.row_start.data(),
                        S.row.data(),
                        S.column.data(),
                        S.column_start.data(),
                        S.by_column.data(),
                        target.data(),
                        curvature.data(),
                        values.data(),
                        work.data(),
                        dense.data(),
                        n_steps};
    std::pair<double, double> result;
    S.refine(job, &result.first, &result.second);
    S.set_values(std::move(values));
    return result;
}

double norm(const Entries& S) {
    double sum = 0;
    for (const double x : S.values) sum += x * x;
    return std::sqrt(sum);
}

// The entries with their values times c.
Entries scaled(const Entries& S, double c) {
    Entries result = S;
    for (double& x : result.values) x *= c;
    for (double& x : result.value_by_column) x *= c;
    return result;
}

// Write the values of the entries into the dense matrix they came from.
void put(const Entries& S, Cells<double> out) {
    require(std::int64_t(out.shape(0)) == S.n_rows && std::int64_t(out.shape(1)) == S.n_columns, "wrong shape of out");
    for (std::size_t e = 0; e < S.size(); ++e) out.data()[S.row[e] * S.n_columns + S.column[e]] = S.values[e];
}

// out = S X, or S' X if transposed.
void sparse_times(const Entries& S, Matrix<double> X, Cells<double> out, bool transposed) {
    require(S.by_column.size() == S.size(), "too many entries");
    const std::int64_t n_rows = transposed ? S.n_columns : S.n_rows, n_inner = transposed ? S.n_rows : S.n_columns;
    require(std::int64_t(X.shape(0)) == n_inner, "wrong shape of X");
    require(std::int64_t(out.shape(0)) == n_rows && out.shape(1) == X.shape(1), "wrong shape of out");
    nb::gil_scoped_release release;
    S.times({n_rows, (transposed ? S.column_start : S.row_start).data(),
             (transposed ? S.row_by_column : S.column).data(), (transposed ? S.value_by_column : S.values).data(),
             X.data(), std::int64_t(X.shape(1)), out.data()});
}

// The smallest of every row; see select.hpp.
void smallest_of_rows(Matrix<float> M, Cells<float> values, Cells<std::int64_t> columns) {
    const std::size_t n = M.shape(0), k = values.shape(1);
    require(values.shape(0) == n && columns.shape(0) == n && columns.shape(1) == k && k >= 1 && k <= M.shape(1),
            "wrong shape of values or columns");
    nb::gil_scoped_release release;
    smallest(M.data(), std::int64_t(n), std::int64_t(M.shape(1)), std::int64_t(k), values.data(), columns.data());
}

// A choice of entries; see select.hpp.
template <auto Choice>
void choose(Matrix<double> M, std::int64_t per_row, std::int64_t per_column, Cells<bool> kept) {
    require(kept.shape(0) == M.shape(0) && kept.shape(1) == M.shape(1), "wrong shape of kept");
    require(M.size() < (std::size_t(1) << 32), "too many entries");
    nb::gil_scoped_release release;
    Choice(M.data(), std::int64_t(M.shape(0)), std::int64_t(M.shape(1)), per_row, per_column,
           reinterpret_cast<unsigned char*>(kept.data()));
}

// out = rows times atoms (n x m times m x r) on the support, and zero elsewhere.
void masked_product(Matrix<double> rows, Matrix<double> atoms, Matrix<std::uint8_t> support, Cells<double> out,
                    int n_threads) {
    const std::int64_t n = std::int64_t(rows.shape(0)), m = std::int64_t(rows.shape(1)),
                       r = std::int64_t(atoms.shape(1));
    const auto fits = [&](const auto& cells) {
        return std::int64_t(cells.shape(0)) == n && std::int64_t(cells.shape(1)) == r;
    };
    require(std::int64_t(atoms.shape(0)) == m && fits(support) && fits(out), "wrong shape of atoms, support or out");
    nb::gil_scoped_release release;
    const SparseColumns columns(atoms.data(), m, r);
    const auto chunk = [&](std::int64_t i, int) {
        for (std::int64_t row = i * kRows; row < std::min(n, (i + 1) * kRows); ++row)
            for (std::int64_t j = 0; j < r; ++j)
                out.data()[row * r + j] = support.data()[row * r + j] ? columns.dot(j, rows.data() + row * m) : 0;
        return true;
    };
    for_each_chunk((n + kRows - 1) / kRows, n_threads, chunk, Interruptible());
}

template <class T>
void bind(nb::module_& m, const char* name) {
    using Out = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
    using Scores = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Labels = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    nb::class_<Product<T>>(m, name)
        .def(
            "__init__",
            [](Product<T>* self, nb::list factors, const std::string& isa) {
                std::vector<FactorSource<T>> sources;
                for (nb::handle factor : factors) sources.push_back(source_of<T>(factor));
                require(!sources.empty(), "no factors");
                for (std::size_t q = 1; q < sources.size(); ++q)
                    require(sources[q - 1].n_columns == sources[q].n_rows, "factors do not chain");
                new (self) Product<T>(sources, isa);
            },
            "factors"_a, "isa"_a = "")
        .def(
            "apply",
            [](const Product<T>& self, const AnyArray& x, Out out, int n_threads) {
                Job<T> job{};
                job.rows = view_of(x, self.n_columns());
                require(out.shape(0) == x.shape(0) && std::int64_t(out.shape(1)) == self.n_rows(),
                        "wrong shape of out");
                require(out.stride(0) == 1 || out.stride(1) == 1 || out.size() == 0, "out must be contiguous");
                job.scores = out.data();
                job.score_row_step = out.stride(0);
                job.score_column_step = out.stride(1);
                run(self, job, n_threads);
            },
            "x"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a)
        .def(
            "apply_one",
            [](const Product<T>& self, const AnyArray& x,
               nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
                require(x.ndim() == 1 && std::int64_t(x.shape(0)) == self.n_columns(),
                        "the vector does not fit the product");
                require(std::int64_t(out.shape(0)) == self.n_rows(), "wrong shape of out");
                Job<T> job{};
                job.rows = {static_cast<const char*>(x.data()),
                            1,
                            self.n_columns(),
                            0,
                            x.stride(0) * std::int64_t(x.itemsize()),
                            scalar_of(x.dtype()),
                            nullptr};
                job.scores = out.data();
                job.score_column_step = 1;
                run(self, job, 1);
            },
            "x"_a.noconvert(), "out"_a.noconvert())
        .def(
            "nearest",
            [](const Product<T>& self, const AnyArray& x, Vector<T> offset, double largest_offset, Labels labels,
               Scores scores, int n_threads) {
                Job<T> job{};
                job.rows = view_of(x, self.n_columns());
                require(std::int64_t(offset.size()) == self.n_rows(), "wrong size of offset");
                require(labels.shape(0) == x.shape(0) && scores.shape(0) == x.shape(0),
                        "wrong shape of labels or scores");
                require(labels.shape(1) == scores.shape(1) && labels.shape(1) >= 1 &&
                            std::int64_t(labels.shape(1)) <= self.n_rows(),
                        "wrong shape of labels or scores");
                job.offset = offset.data();
                job.largest_offset = largest_offset;
                job.labels = labels.data();
                job.best = scores.data();
                job.n_best = job.n_listed = std::int64_t(labels.shape(1));
                return run(self, job, n_threads);
            },
            "x"_a.noconvert(), "offset"_a.noconvert(), "largest_offset"_a, "labels"_a.noconvert(),
            "scores"_a.noconvert(), "n_threads"_a)
        .def(
            "nearest_centers",
            [](const Product<T>& self, const AnyArray& x, Vector<T> offset, Matrix<T> centers, Vector<T> center_offset,
               std::int64_t n_listed, Labels labels, Scores scores, double largest_offset, double growth,
               int n_threads) {
                Job<T> job{};
                job.rows = view_of(x, self.n_columns());
                const std::int64_t K = self.n_rows(), n_best = std::int64_t(labels.shape(1));
                require(std::int64_t(offset.size()) == K && std::int64_t(center_offset.size()) == K,
                        "wrong size of offset");
                require(std::int64_t(centers.shape(0)) == K && std::int64_t(centers.shape(1)) == self.n_columns(),
                        "wrong shape of centers");
                require(labels.shape(0) == x.shape(0) && scores.shape(0) == x.shape(0) && n_best >= 1 &&
                            scores.shape(1) == labels.shape(1),
                        "wrong shape of labels or scores");
                require(n_best <= n_listed && n_listed <= K && n_listed >= 2, "wrong n_listed");
                job.offset = offset.data();
                job.largest_offset = largest_offset;
                job.labels = labels.data();
                job.best = scores.data();
                job.n_best = n_best;
                job.n_listed = n_listed;
                job.centers = centers.data();
                job.center_offset = center_offset.data();
                return run(self, job, n_threads, growth);
            },
            "x"_a.noconvert(), "offset"_a.noconvert(), "centers"_a.noconvert(), "center_offset"_a.noconvert(),
            "n_listed"_a, "labels"_a.noconvert(), "scores"_a.noconvert(), "largest_offset"_a, "growth"_a, "n_threads"_a)
        .def(
            "settle",
            [](const Product<T>& self, const AnyArray& x, const std::optional<AnyArray>& projected,
               std::optional<Vector<std::int64_t>> index, Vector<T> offset, Vector<T> mean, Matrix<T> centers,
               Vector<T> center_offset, Vector<T> slack, double reach, std::int64_t shortlist, bool settle_all,
               bool norms_known, Line<T> norms, Line<std::int32_t> labels, Line<T> best, Line<T> second,
               double largest_offset, double growth, int n_threads) {
                const std::size_t n = x.shape(0), K = std::size_t(self.n_rows()), D = centers.shape(1);
                require(offset.size() == K && center_offset.size() == K && slack.size() == K,
                        "wrong size of offset, center_offset or slack");
                require(mean.size() == D && centers.shape(0) == K, "wrong shape of mean or centers");
                require(!projected || (projected->shape(0) == n && norms_known), "wrong projected rows");
                require(norms.size() == n && labels.size() == n && best.size() == n && second.size() == n,
                        "wrong size of norms, labels, best or second");
                require(shortlist >= 0 && std::size_t(shortlist) <= K, "shortlist out of range");
                SettleJob<T> job{};
                job.rows = view_of(x, std::int64_t(D), index);
                job.screen.rows = view_of(projected ? *projected : x, self.n_columns(), index);
                job.screen.offset = offset.data();
                job.screen.largest_offset = largest_offset;
                job.mean = mean.data();
                job.centers = centers.data();
                job.center_offset = center_offset.data();
                job.slack = slack.data();
                job.margin = T(reach);
                job.shortlist = shortlist;
                job.exact_scores = settle_all;
                job.norms_known = norms_known;
                job.norms = norms.data();
                job.labels = labels.data();
                job.best = best.data();
                job.second = second.data();
                std::int64_t n_listed = 0, n_settled = 0, bad = -1;
                job.n_listed = &n_listed;
                job.n_settled = &n_settled;
                {
                    nb::gil_scoped_release release;
                    bad = self.settle(job, growth, n_threads, Interruptible());
                }
                return std::make_tuple(bad, n_listed, n_settled);
            },
            "x"_a.noconvert(), "projected"_a.noconvert().none(), "index"_a.noconvert().none(), "offset"_a.noconvert(),
            "mean"_a.noconvert(), "centers"_a.noconvert(), "center_offset"_a.noconvert(), "slack"_a.noconvert(),
            "reach"_a, "shortlist"_a, "settle_all"_a, "norms_known"_a, "norms"_a.noconvert(), "labels"_a.noconvert(),
            "best"_a.noconvert(), "second"_a.noconvert(), "largest_offset"_a, "growth"_a, "n_threads"_a)
        .def_prop_ro("isa", &Product<T>::isa);
}

}  // namespace
}  // namespace quickmeans

NB_MODULE(_native, m) {
    m.doc() = "The native kernel of quickmeans: see quickmeans.transform.SparseProduct.";
    m.def("instruction_sets", &quickmeans::instruction_sets);
    m.def("fit_supports", &quickmeans::fit_supports, "gram"_a.noconvert(), "targets"_a.noconvert(),
          "weights"_a.noconvert(), "drop"_a.noconvert(), "support"_a.noconvert(), "values"_a.noconvert(),
          "prices"_a.noconvert().none(), "n_threads"_a, "isa"_a = "");
    m.def("masked_product", &quickmeans::masked_product, "rows"_a.noconvert(), "atoms"_a.noconvert(),
          "support"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def("add_members", &quickmeans::add_members, "x"_a.noconvert(), "members"_a.noconvert(), "starts"_a.noconvert(),
          "weights"_a.noconvert().none(), "sums"_a.noconvert(), "n_threads"_a, "isa"_a = "");
    m.def("moments", &quickmeans::moments, "x"_a.noconvert(), "weights"_a.noconvert().none(), "shift"_a.noconvert(),
          "sums"_a.noconvert(), "squares"_a.noconvert(), "n_threads"_a, "isa"_a = "");
    m.def("seed", &quickmeans::seed, "points"_a.noconvert(), "residuals"_a.noconvert(), "weights"_a.noconvert(),
          "first"_a, "uniforms"_a.noconvert(), "chosen"_a.noconvert(), "isa"_a = "");
    nb::class_<quickmeans::Entries>(m, "Entries")
        .def(
            "__init__",
            [](quickmeans::Entries* self, quickmeans::Matrix<double> S, std::size_t most, const std::string& isa) {
                new (self) quickmeans::Entries(S.data(), std::int64_t(S.shape(0)), std::int64_t(S.shape(1)), most, isa);
            },
            "S"_a.noconvert(), "most"_a, "isa"_a = "")
        .def("__len__", &quickmeans::Entries::size)
        .def("norm", &quickmeans::norm)
        .def("scaled", &quickmeans::scaled, "c"_a)
        .def("put", &quickmeans::put, "out"_a.noconvert())
        .def("times", &quickmeans::sparse_times, "X"_a.noconvert(), "out"_a.noconvert(), "transposed"_a)
        .def("refine", &quickmeans::refine, "P"_a.noconvert().none(), "diagonal"_a.noconvert(),
             "G"_a.noconvert().none(), "M"_a.noconvert(), "row_curvature"_a.noconvert(),
             "column_curvature"_a.noconvert(), "n_steps"_a);
    m.def("smallest", &quickmeans::smallest_of_rows, "M"_a.noconvert(), "values"_a.noconvert(),
          "columns"_a.noconvert());
    m.def("mark_largest", &quickmeans::choose<quickmeans::mark_largest>, "M"_a.noconvert(), "per_row"_a, "per_column"_a,
          "kept"_a.noconvert());
    m.def("match_largest", &quickmeans::choose<quickmeans::match_largest>, "M"_a.noconvert(), "per_row"_a,
          "per_column"_a, "kept"_a.noconvert());
    quickmeans::bind<float>(m, "Product32");
    quickmeans::bind<double>(m, "Product64");
    quickmeans::bind_gaussian(m);
    quickmeans::bind_screen(m);
    quickmeans::bind_sums(m);
}
