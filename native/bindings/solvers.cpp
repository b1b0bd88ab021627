// The inner loops of sparse ALS: least squares on supports, and products on supports.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "supports.hpp"

namespace quickmeans {
namespace {

// Least squares on supports; see SupportJob.
void fit(Matrix<double> gram, Matrix<double> targets, Vector<double> weights, Vector<std::int64_t> drop,
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
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    fit_supports(job, set, n_threads, Interrupts());
}

// The product of rows (n x m) and atoms (m x r) on the support; see MaskedJob.
void multiply_masked(Matrix<double> rows, Matrix<double> atoms, Matrix<std::uint8_t> support, Cells<double> out,
                     int n_threads) {
    const auto n = std::int64_t(rows.shape(0)), m = std::int64_t(rows.shape(1)), r = std::int64_t(atoms.shape(1));
    require(has_shape(atoms, m, r) && has_shape(support, n, r) && has_shape(out, n, r) && m < (std::int64_t(1) << 31),
            "wrong shape of atoms, support or out");
    const MaskedJob job{.n_rows = n,
                        .n_columns = m,
                        .n_atoms = r,
                        .rows = rows.data(),
                        .atoms = atoms.data(),
                        .support = support.data(),
                        .out = out.data()};
    nb::gil_scoped_release release;
    masked_product(job, n_threads, Interrupts());
}

}  // namespace

void bind_solvers(nb::module_& m) {
    m.def("fit_supports", &fit, "gram"_a.noconvert(), "targets"_a.noconvert(), "weights"_a.noconvert(),
          "drop"_a.noconvert(), "support"_a.noconvert(), "values"_a.noconvert(), "prices"_a.noconvert().none(),
          "n_threads"_a, "isa"_a);
    m.def("masked_product", &multiply_masked, "rows"_a.noconvert(), "atoms"_a.noconvert(), "support"_a.noconvert(),
          "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace quickmeans
