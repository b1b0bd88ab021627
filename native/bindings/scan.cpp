// Lists of rows that are kept elsewhere, and the search for them.
#include "scan.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "coarse.hpp"

namespace quickmeans {
namespace {

using Numbers = Vector<std::int64_t>;
using Levels = std::vector<std::shared_ptr<RowLists>>;

void construct_lists(RowLists* self, std::int64_t n_lists, std::int64_t n_columns, bool similarity, bool with_codes,
                     const std::string& isa) {
    require(n_lists > 0 && n_columns > 0, "there must be lists and columns");
    new (self) RowLists(n_lists, n_columns, similarity, with_codes, isa);
}

// The named lists have the rows and ids at these addresses from now on, which the caller answers for.
void set(RowLists& self, Numbers labels, Numbers rows, Numbers ids, Numbers sizes, int n_threads) {
    const auto n = std::int64_t(labels.size());
    require(has_size(rows, n) && has_size(ids, n) && has_size(sizes, n), "arrays of different sizes");
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t label = labels.data()[i], size = sizes.data()[i];
        require(label >= 0 && label < self.n_lists() && size >= 0, "a label or a size is out of range");
        require(size == 0 || (rows.data()[i] && ids.data()[i]), "a list has rows and no address");
    }
    std::vector<ScanList> lists(std::size_t(n), ScanList{});
    for (std::int64_t i = 0; i < n; ++i)
        lists[std::size_t(i)] = {reinterpret_cast<const float*>(rows.data()[i]),
                                 reinterpret_cast<const std::int64_t*>(ids.data()[i]), sizes.data()[i]};
    nb::gil_scoped_release release;
    self.set(labels.data(), lists.data(), n, n_threads, Interrupts());
}

void check_results(Matrix<float> queries, std::int64_t n_columns, const Cells<float>& values,
                   const Cells<std::int64_t>& ids) {
    const auto n = std::int64_t(queries.shape(0)), k = std::int64_t(values.shape(1));
    require(has_shape(queries, n, n_columns), "wrong shape of queries");
    require(k > 0 && has_shape(values, n, k) && has_shape(ids, n, k), "wrong shape of values or ids");
}

void search_lists(const RowLists& self, Matrix<float> queries, Matrix<std::int64_t> lists, Cells<float> values,
                  Cells<std::int64_t> ids, int n_threads) {
    check_results(queries, self.n_columns(), values, ids);
    const auto n = std::int64_t(queries.shape(0)), m = std::int64_t(lists.shape(1)), k = std::int64_t(values.shape(1));
    require(std::int64_t(lists.shape(0)) == n && m > 0, "wrong shape of lists");
    for (std::int64_t i = 0; i < n * m; ++i)
        require(lists.data()[i] >= -1 && lists.data()[i] < self.n_lists(), "a list is out of range");
    nb::gil_scoped_release release;
    self.search(queries.data(), {lists.data(), n, m}, k, values.data(), ids.data(), n_threads, Interrupts());
}

void construct_coarse(Coarse* self, const Levels& levels, const std::optional<Matrix<float>>& directions,
                      std::int64_t n_columns, const std::string& isa) {
    require(!levels.empty() && n_columns > 0, "there must be levels and columns");
    require(!directions || has_shape(*directions, std::int64_t(directions->shape(0)), n_columns),
            "wrong shape of directions");
    const std::int64_t width = directions ? std::int64_t(directions->shape(0)) + 1 : n_columns;
    for (const auto& level : levels) require(level && level->n_columns() == width, "levels of different widths");
    require(levels.front()->n_lists() == 1, "the first level must be one list");
    for (std::size_t i = 1; i < levels.size(); ++i)
        require(levels[i - 1]->largest_id() < levels[i]->n_lists(), "a level names lists that the next does not have");
    std::vector<float> own;
    if (directions) own.assign(directions->data(), directions->data() + directions->size());
    new (self) Coarse({levels.begin(), levels.end()}, n_columns, std::move(own), isa);
}

void check_counts(const Coarse& self, const std::vector<std::int64_t>& counts) {
    require(std::int64_t(counts.size()) == self.n_levels(), "wrong number of counts");
    for (const std::int64_t count : counts) require(count > 0, "counts must be positive");
}

void find(const Coarse& self, Matrix<float> queries, const std::vector<std::int64_t>& counts, Cells<std::int64_t> lists,
          int n_threads) {
    check_counts(self, counts);
    const auto n = std::int64_t(queries.shape(0));
    require(has_shape(queries, n, self.n_columns()), "wrong shape of queries");
    require(has_shape(lists, n, counts.back()), "wrong shape of lists");
    nb::gil_scoped_release release;
    self.find(queries.data(), n, counts, lists.data(), n_threads, Interrupts());
}

// Find the lists, and search them. Returns -1, or a query that cannot be compared.
std::int64_t search(const Coarse& self, Matrix<float> queries, const std::vector<std::int64_t>& counts,
                    const RowLists& rows, double limit, Cells<float> values, Cells<std::int64_t> ids, int n_threads) {
    check_counts(self, counts);
    check_results(queries, self.n_columns(), values, ids);
    require(rows.n_columns() == self.n_columns() && self.largest_list() < rows.n_lists(), "lists of another index");
    const auto n = std::int64_t(queries.shape(0)), m = counts.back();
    nb::gil_scoped_release release;
    Interrupts interrupts;
    const std::int64_t bad = self.first_bad(queries.data(), n, limit, interrupts);
    if (bad >= 0) return bad;
    std::vector<std::int64_t> lists(std::size_t(n * m));
    self.find(queries.data(), n, counts, lists.data(), n_threads, interrupts);
    rows.search(queries.data(), {lists.data(), n, m}, std::int64_t(values.shape(1)), values.data(), ids.data(),
                n_threads, interrupts);
    return -1;
}

}  // namespace

void bind_scan(nb::module_& m) {
    nb::class_<RowLists>(m, "RowLists")
        .def("__init__", &construct_lists, "n_lists"_a, "n_columns"_a, "similarity"_a, "with_codes"_a, "isa"_a)
        .def("set", &set, "labels"_a.noconvert(), "rows"_a.noconvert(), "ids"_a.noconvert(), "sizes"_a.noconvert(),
             "n_threads"_a)
        .def("search", &search_lists, "queries"_a.noconvert(), "lists"_a.noconvert(), "values"_a.noconvert(),
             "ids"_a.noconvert(), "n_threads"_a);
    nb::class_<Coarse>(m, "Coarse")
        .def("__init__", &construct_coarse, "levels"_a, "directions"_a.noconvert().none(), "n_columns"_a, "isa"_a)
        .def("find", &find, "queries"_a.noconvert(), "counts"_a, "lists"_a.noconvert(), "n_threads"_a)
        .def("search", &search, "queries"_a.noconvert(), "counts"_a, "rows"_a, "limit"_a, "values"_a.noconvert(),
             "ids"_a.noconvert(), "n_threads"_a);
}

}  // namespace quickmeans
