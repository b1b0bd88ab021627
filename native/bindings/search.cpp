// The search for better clusters.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "search.hpp"

namespace quickmeans {
namespace {

// A search that keeps its rows alive.
struct BoundSearch {
    Matrix<float> rows;
    Vector<double> weights;
    Search search;

    BoundSearch(Matrix<float> x, Vector<double> w, bool spherical, int n_threads, const std::string& isa)
        : rows(x),
          weights(w),
          search(x.data(), std::int64_t(x.shape(0)), std::int64_t(x.shape(1)), checked(x, w).data(), spherical,
                 n_threads, find_instruction_set(isa), Interrupts()) {}

  private:
    static const Vector<double>& checked(const Matrix<float>& x, const Vector<double>& w) {
        require(has_size(w, std::int64_t(x.shape(0))), "wrong size of weights");
        require(x.shape(0) > 0 && x.shape(1) > 0, "no rows");
        return w;
    }
};

void place(BoundSearch& self, Matrix<float> centers) {
    require(centers.shape(0) > 0 && std::int64_t(centers.shape(1)) == self.search.n_columns(), "wrong centers");
    nb::gil_scoped_release release;
    self.search.place(centers.data(), std::int64_t(centers.shape(0)), Interrupts());
}

void means(const BoundSearch& self, Cells<double> out) {
    require(has_shape(out, self.search.n_centers(), self.search.n_columns()), "wrong shape of centers");
    self.search.means(out.data());
}

void labels(const BoundSearch& self, Line<std::int32_t> out) {
    require(has_size(out, self.search.n_rows()), "wrong size of labels");
    std::copy(self.search.labels().begin(), self.search.labels().end(), out.data());
}

void cluster_weights(const BoundSearch& self, Line<double> out) {
    require(has_size(out, self.search.n_centers()), "wrong size of weights");
    std::copy(self.search.cluster_weights().begin(), self.search.cluster_weights().end(), out.data());
}

}  // namespace

void bind_search(nb::module_& m) {
    nb::class_<BoundSearch>(m, "Search")
        .def(nb::init<Matrix<float>, Vector<double>, bool, int, const std::string&>(), "rows"_a.noconvert(),
             "weights"_a.noconvert(), "spherical"_a, "n_threads"_a, "isa"_a)
        .def("place", &place, "centers"_a.noconvert())
        .def(
            "iterate",
            [](BoundSearch& self, std::int64_t most, double tol, bool until_empty) {
                nb::gil_scoped_release release;
                return self.search.iterate(most, tol, until_empty, Interrupts());
            },
            "most"_a, "tol"_a, "until_empty"_a)
        .def(
            "swap",
            [](BoundSearch& self, std::int64_t most) {
                nb::gil_scoped_release release;
                return self.search.swap(most, Interrupts());
            },
            "most"_a)
        .def(
            "grow",
            [](BoundSearch& self, std::int64_t most) {
                nb::gil_scoped_release release;
                return self.search.grow(most, Interrupts());
            },
            "most"_a)
        .def(
            "shrink",
            [](BoundSearch& self, std::int64_t count) {
                nb::gil_scoped_release release;
                self.search.shrink(count, Interrupts());
            },
            "count"_a)
        .def("keep", [](BoundSearch& self) { self.search.keep(); })
        .def("go_back", [](BoundSearch& self) { self.search.go_back(); })
        .def("means", &means, "out"_a.noconvert())
        .def("labels", &labels, "out"_a.noconvert())
        .def("cluster_weights", &cluster_weights, "out"_a.noconvert())
        .def_prop_ro("n_centers", [](const BoundSearch& self) { return self.search.n_centers(); })
        .def_prop_ro("assigned", [](const BoundSearch& self) { return self.search.assigned(); })
        .def_prop_ro("objective", [](const BoundSearch& self) { return self.search.objective(); })
        .def_prop_ro("n_empty", [](const BoundSearch& self) { return self.search.n_empty(); })
        .def_prop_ro("history", [](const BoundSearch& self) { return self.search.history(); })
        .def_prop_ro("converged", [](const BoundSearch& self) { return self.search.converged(); })
        .def_prop_ro("pass_work", [](const BoundSearch& self) { return self.search.pass_work(); })
        .def_prop_ro("work", [](const BoundSearch& self) { return self.search.work(); });
}

}  // namespace quickmeans
