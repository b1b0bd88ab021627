// palm4MSA.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "palm.hpp"

namespace quickmeans {
namespace {

// Sets are given one per factor: entries per row and per column (both zero: `project` is called), and two flags.
void construct(Palm* self, Matrix<double> U, Vector<double> weights, const std::vector<Matrix<double>>& factors,
               Matrix<std::int64_t> counts, Vector<std::uint8_t> greedy, Vector<std::uint8_t> of_supports,
               bool paper_steps, bool once_per_sweep, double shortest, int longest_pause, int n_refinements,
               int n_threads, const std::string& isa) {
    const auto K = std::int64_t(U.shape(0)), D = std::int64_t(U.shape(1)), Q = std::int64_t(factors.size());
    constexpr auto limit = std::int64_t(1) << 31;
    require(has_size(weights, K), "wrong size of weights");
    require(Q > 0 && has_shape(counts, Q, 2) && has_size(greedy, Q) && has_size(of_supports, Q),
            "wrong number of sets");
    std::vector<Entries> entries;
    std::vector<FactorSet> sets;
    std::int64_t rows = K;
    for (std::size_t q = 0; q < factors.size(); ++q) {
        const auto n = std::int64_t(factors[q].shape(0)), m = std::int64_t(factors[q].shape(1));
        require(n == rows && n > 0 && m > 0 && n < limit && m < limit, "wrong shape of a factor");
        entries.emplace_back(factors[q].data(), n, m, m);
        const std::int64_t* const count = counts.data() + 2 * q;
        require(count[0] >= 0 && count[1] >= 0, "negative number of entries");
        sets.push_back({count[0], count[1], bool(greedy.data()[q]), bool(of_supports.data()[q])});
        rows = m;
    }
    require(rows == D, "wrong shape of the last factor");
    const Routines& routines = find_instruction_set(isa).routines;
    new (self) Palm(U.data(), weights.data(), K, D, std::move(entries), std::move(sets),
                    {paper_steps, once_per_sweep, shortest, longest_pause, n_refinements, n_threads}, routines);
}

double start(Palm& self) {
    nb::gil_scoped_release release;
    return self.start(Interrupts());
}

// `project(q, M)` changes M in place.
double sweep(Palm& self, nb::callable project) {
    const ProjectFactor call = [&](std::size_t q, std::int64_t n, std::int64_t m, double* M) {
        nb::gil_scoped_acquire acquire;
        project(q, nb::ndarray<nb::numpy, double, nb::ndim<2>>(M, {std::size_t(n), std::size_t(m)}, nb::none()));
    };
    nb::gil_scoped_release release;
    return self.sweep(call, Interrupts());
}

// Write factor q, of norm one, to the dense matrix, which holds zeros.
void put_factor(const Palm& self, std::size_t q, Cells<double> out) {
    require(q < self.factors().size(), "no such factor");
    const Entries& S = self.factors()[q];
    require(has_shape(out, S.n_rows, S.n_columns), "wrong shape of out");
    for (std::size_t e = 0; e < S.size(); ++e) out.data()[S.row[e] * S.n_columns + S.column[e]] = S.values[e];
}

}  // namespace

void bind_palm(nb::module_& m) {
    nb::class_<Palm>(m, "Palm")
        .def("__init__", &construct, "U"_a.noconvert(), "weights"_a.noconvert(), "factors"_a, "counts"_a.noconvert(),
             "greedy"_a.noconvert(), "of_supports"_a.noconvert(), "paper_steps"_a, "once_per_sweep"_a, "shortest"_a,
             "longest_pause"_a, "n_refinements"_a, "n_threads"_a, "isa"_a)
        .def("start", &start)
        .def("sweep", &sweep, "project"_a)
        .def("put_factor", &put_factor, "q"_a, "out"_a.noconvert())
        .def_prop_ro("scale", &Palm::scale)
        .def_prop_ro("total", &Palm::total);
}

}  // namespace quickmeans
