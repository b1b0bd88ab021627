// Sizes of clusters within bounds.
#include "balance.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "candidate_lists.hpp"
#include "dispatch.hpp"

namespace quickmeans {
namespace {

void make_lists(CandidateLists* self, Matrix<float> centers, int n_threads, const std::string& isa) {
    const auto n = std::int64_t(centers.shape(0)), n_columns = std::int64_t(centers.shape(1));
    require(n > 0 && n_columns > 0 && n < (std::int64_t(1) << 31), "wrong centers");
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    new (self) CandidateLists(centers.data(), n, n_columns, n_threads, set, Interrupts());
}

void list(const CandidateLists& self, Matrix<float> rows, Vector<std::int32_t> labels, Cells<std::int32_t> candidates,
          Cells<float> squares) {
    const auto n = std::int64_t(rows.shape(0)), m = std::int64_t(candidates.shape(1));
    require(std::int64_t(rows.shape(1)) == self.n_columns() && has_size(labels, n), "wrong rows or labels");
    require(m > 0 && has_shape(candidates, n, m) && has_shape(squares, n, m), "wrong shape of candidates");
    nb::gil_scoped_release release;
    self.list(rows.data(), n, labels.data(), m, candidates.data(), squares.data(), Interrupts());
}

int balance_rows(Matrix<std::int32_t> candidates, Matrix<float> squares, std::int64_t least, std::int64_t most,
                 Line<double> prices, Line<std::int32_t> labels, Line<bool> reached) {
    const auto n = std::int64_t(candidates.shape(0)), m = std::int64_t(candidates.shape(1));
    const auto K = std::int64_t(prices.size());
    require(has_shape(squares, n, m) && has_size(labels, n) && has_size(reached, K), "wrong sizes");
    require(n < (std::int64_t(1) << 31) && K < (std::int64_t(1) << 31), "too many rows");
    require(least >= 0 && least <= most, "wrong bounds");
    const BalanceJob job{n,
                         K,
                         m,
                         candidates.data(),
                         squares.data(),
                         least,
                         most,
                         prices.data(),
                         labels.data(),
                         reinterpret_cast<char*>(reached.data())};
    nb::gil_scoped_release release;
    return int(balance(job, Interrupts()));
}

}  // namespace

void bind_balance(nb::module_& m) {
    nb::class_<CandidateLists>(m, "CandidateLists")
        .def("__init__", &make_lists, "centers"_a.noconvert(), "n_threads"_a, "isa"_a)
        .def("list", &list, "rows"_a.noconvert(), "labels"_a.noconvert(), "candidates"_a.noconvert(),
             "squares"_a.noconvert());
    m.def("balance", &balance_rows, "candidates"_a.noconvert(), "squares"_a.noconvert(), "least"_a, "most"_a,
          "prices"_a.noconvert(), "labels"_a.noconvert(), "reached"_a.noconvert());
}

}  // namespace quickmeans
