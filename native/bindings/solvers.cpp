// The inner loops of the solvers: least squares on supports, products on supports, and a sparse factor.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "entries.hpp"
#include "masked.hpp"
#include "parallel.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kRows = 8;  // that a thread takes at a time, so that the threads end at about the same time

std::int64_t n_chunks(std::int64_t n_rows) { return (n_rows + kRows - 1) / kRows; }

// Least squares on supports; see SupportJob.
void fit_supports(Matrix<double> gram, Matrix<double> targets, Vector<double> weights, Vector<std::int64_t> drop,
                  Cells<std::uint8_t> support, Cells<double> values, std::optional<Cells<double>> prices, int n_threads,
                  const std::string& isa) {
    const auto n = std::int64_t(targets.shape(0)), r = std::int64_t(targets.shape(1));
    require(r < (std::int64_t(1) << 31) && has_shape(gram, r, r), "wrong shape of gram");
    require(has_size(weights, n) && has_size(drop, n), "wrong size of weights or drop");
    require(has_shape(support, n, r) && has_shape(values, n, r) && (!prices || has_shape(*prices, n, r)),
            "wrong shape of support, values or prices");
    const SupportJob job{.n_rows = n,
                         .n_atoms = r,
                         .gram = gram.data(),
                         .targets = targets.data(),
                         .weights = weights.data(),
                         .drop = drop.data(),
                         .support = support.data(),
                         .values = values.data(),
                         .prices = prices ? prices->data() : nullptr};
    const auto fit_rows = find_instruction_set(isa).routines.fit_rows;
    nb::gil_scoped_release release;
    const std::size_t count =
        std::size_t(std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(n_chunks(n), 1)));
    const std::size_t longest = std::size_t(r) + kSupportPadding;
    std::vector<std::vector<double>> scratch(count, std::vector<double>(longest * (longest + 2 * kPivots)));
    std::vector<std::vector<std::int32_t>> order(count, std::vector<std::int32_t>(std::size_t(r)));
    const auto chunk = [&](std::int64_t i, int thread, const Poll& poll) {
        const Range rows{i * kRows, std::min(kRows, n - i * kRows)};
        fit_rows(job, rows, scratch[std::size_t(thread)].data(), order[std::size_t(thread)].data(), poll);
        return true;
    };
    for_each_chunk(n_chunks(n), int(count), chunk, Interrupts());
}

// out = rows times atoms (n x m times m x r) on the support, and zero elsewhere.
void masked_product(Matrix<double> rows, Matrix<double> atoms, Matrix<std::uint8_t> support, Cells<double> out,
                    int n_threads) {
    const auto n = std::int64_t(rows.shape(0)), m = std::int64_t(rows.shape(1)), r = std::int64_t(atoms.shape(1));
    require(has_shape(atoms, m, r) && has_shape(support, n, r) && has_shape(out, n, r) && m < (std::int64_t(1) << 31),
            "wrong shape of atoms, support or out");
    nb::gil_scoped_release release;
    const SparseColumns columns(atoms.data(), m, r, Interrupts());
    const auto chunk = [&](std::int64_t i, int, const Poll& poll) {
        Pacer pacer{poll};
        for (std::int64_t row = i * kRows; row < std::min(n, (i + 1) * kRows); ++row)
            for (std::int64_t j = 0; j < r; ++j) {
                const bool wanted = support.data()[row * r + j];
                out.data()[row * r + j] = wanted ? columns.dot(j, rows.data() + row * m) : 0;
                pacer.did(1 + wanted * columns.length(j));
            }
        return true;
    };
    for_each_chunk(n_chunks(n), n_threads, chunk, Interrupts());
}

void construct(Entries* self, Matrix<double> S, std::size_t most, const std::string& isa) {
    const auto n = std::int64_t(S.shape(0)), m = std::int64_t(S.shape(1));
    require(n < (std::int64_t(1) << 31) && m < (std::int64_t(1) << 31), "too many rows or columns");
    const Routines& routines = find_instruction_set(isa).routines;
    nb::gil_scoped_release release;
    new (self) Entries(S.data(), n, m, most, routines, Interrupts());
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
    require(has_shape(out, S.n_rows, S.n_columns), "wrong shape of out");
    for (std::size_t e = 0; e < S.size(); ++e) out.data()[S.row[e] * S.n_columns + S.column[e]] = S.values[e];
}

// out = S X, or S' X if transposed.
void times(const Entries& S, Matrix<double> X, Cells<double> out, bool transposed) {
    require(S.is_complete(), "too many entries");
    const std::int64_t n = transposed ? S.n_columns : S.n_rows, m = transposed ? S.n_rows : S.n_columns;
    const auto width = std::int64_t(X.shape(1));
    require(has_shape(X, m, width), "wrong shape of X");
    require(has_shape(out, n, width), "wrong shape of out");
    const SparseJob job{.n_rows = n,
                        .start = (transposed ? S.column_start : S.row_start).data(),
                        .index = (transposed ? S.row_by_column : S.column).data(),
                        .values = (transposed ? S.value_by_column : S.values).data(),
                        .X = X.data(),
                        .width = width,
                        .out = out.data()};
    nb::gil_scoped_release release;
    S.routines->sparse_times(job, Interrupts());
}

// Conjugate gradients for a factor S on its support; see RefineJob. Returns <M, S> and <S, P S G>.
std::pair<double, double> refine(Entries& S, std::optional<Matrix<double>> P, Vector<double> diagonal,
                                 std::optional<Matrix<double>> G, Matrix<double> M, Vector<double> row_curvature,
                                 Vector<double> column_curvature, int n_steps) {
    const std::int64_t n = S.n_rows, m = S.n_columns;
    require(S.is_complete(), "too many entries");
    require(has_shape(M, n, m), "wrong shape of M");
    require(!P || has_shape(*P, n, n), "wrong shape of P");
    require(!G || has_shape(*G, m, m), "wrong shape of G");
    require(has_size(row_curvature, n) && has_size(column_curvature, m), "wrong size of the curvatures");
    require(P || has_size(diagonal, n), "wrong size of the diagonal");
    nb::gil_scoped_release release;
    std::vector<double> target(S.size()), curvature(S.size()), values = S.values, work(3 * S.size());
    std::vector<double> dense(P && G ? std::size_t(2 * n * m) : 0);
    for (std::size_t e = 0; e < S.size(); ++e) {
        target[e] = M.data()[S.row[e] * m + S.column[e]];
        curvature[e] = row_curvature.data()[S.row[e]] * column_curvature.data()[S.column[e]];
    }
    const RefineJob job{.n_rows = n,
                        .n_columns = m,
                        .n_entries = std::int64_t(S.size()),
                        .P = P ? P->data() : nullptr,
                        .diagonal = diagonal.data(),
                        .G = G ? G->data() : nullptr,
                        .row_start = S.row_start.data(),
                        .row = S.row.data(),
                        .column = S.column.data(),
                        .column_start = S.column_start.data(),
                        .by_column = S.by_column.data(),
                        .target = target.data(),
                        .curvature = curvature.data(),
                        .values = values.data(),
                        .work = work.data(),
                        .dense = dense.data(),
                        .n_steps = n_steps};
    std::pair<double, double> result;
    S.routines->refine(job, &result.first, &result.second, Interrupts());
    S.set_values(std::move(values));
    return result;
}

}  // namespace

void bind_solvers(nb::module_& m) {
    m.def("fit_supports", &fit_supports, "gram"_a.noconvert(), "targets"_a.noconvert(), "weights"_a.noconvert(),
          "drop"_a.noconvert(), "support"_a.noconvert(), "values"_a.noconvert(), "prices"_a.noconvert().none(),
          "n_threads"_a, "isa"_a);
    m.def("masked_product", &masked_product, "rows"_a.noconvert(), "atoms"_a.noconvert(), "support"_a.noconvert(),
          "out"_a.noconvert(), "n_threads"_a);
    nb::class_<Entries>(m, "Entries")
        .def("__init__", &construct, "S"_a.noconvert(), "most"_a, "isa"_a)
        .def("__len__", &Entries::size)
        .def("norm", &norm)
        .def("scaled", &scaled, "c"_a)
        .def("put", &put, "out"_a.noconvert())
        .def("times", &times, "X"_a.noconvert(), "out"_a.noconvert(), "transposed"_a)
        .def("refine", &refine, "P"_a.noconvert().none(), "diagonal"_a.noconvert(), "G"_a.noconvert().none(),
             "M"_a.noconvert(), "row_curvature"_a.noconvert(), "column_curvature"_a.noconvert(), "n_steps"_a);
}

}  // namespace quickmeans
