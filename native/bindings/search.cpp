// The search for better clusters.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"
#include "local_search.hpp"
#include "search.hpp"

namespace quickmeans {
namespace {

// A search that keeps its rows alive.
template <class S>
struct Bound {
    Matrix<float> rows;
    Vector<double> weights;
    S search;

    Bound(Matrix<float> x, Vector<double> w, bool spherical, int n_threads, const std::string& isa)
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

template <class S>
void place(Bound<S>& self, Matrix<float> centers) {
    require(centers.shape(0) > 0 && std::int64_t(centers.shape(1)) == self.search.n_columns(), "wrong centers");
    require(centers.shape(0) < (std::size_t(1) << 31), "too many centers");
    nb::gil_scoped_release release;
    self.search.place(centers.data(), std::int64_t(centers.shape(0)), Interrupts());
}

template <class S>
void means(const Bound<S>& self, Cells<double> out) {
    require(has_shape(out, self.search.n_centers(), self.search.n_columns()), "wrong shape of centers");
    self.search.means(out.data());
}

template <class S>
void labels(const Bound<S>& self, Line<std::int32_t> out) {
    require(has_size(out, self.search.n_rows()), "wrong size of labels");
    std::copy(self.search.labels().begin(), self.search.labels().end(), out.data());
}

template <class S>
void cluster_weights(const Bound<S>& self, Line<double> out) {
    require(has_size(out, self.search.n_centers()), "wrong size of weights");
    std::copy(self.search.cluster_weights().begin(), self.search.cluster_weights().end(), out.data());
}

// What all searches have.
template <class S>
nb::class_<Bound<S>> bind_one(nb::module_& m, const char* name) {
    using Self = Bound<S>;
    return nb::class_<Self>(m, name)
        .def(nb::init<Matrix<float>, Vector<double>, bool, int, const std::string&>(), "rows"_a.noconvert(),
             "weights"_a.noconvert(), "spherical"_a, "n_threads"_a, "isa"_a)
        .def("place", &place<S>, "centers"_a.noconvert())
        .def(
            "iterate",
            [](Self& self, std::int64_t most, double tol, bool until_empty) {
                nb::gil_scoped_release release;
                return self.search.iterate(most, tol, until_empty, Interrupts());
            },
            "most"_a, "tol"_a, "until_empty"_a)
        .def(
            "swap",
            [](Self& self, std::int64_t most) {
                nb::gil_scoped_release release;
                return self.search.swap(most, Interrupts());
            },
            "most"_a)
        .def("keep", [](Self& self) { self.search.keep(); })
        .def("go_back", [](Self& self) { self.search.go_back(); })
        .def("means", &means<S>, "out"_a.noconvert())
        .def("labels", &labels<S>, "out"_a.noconvert())
        .def("cluster_weights", &cluster_weights<S>, "out"_a.noconvert())
        .def_prop_ro("n_centers", [](const Self& self) { return self.search.n_centers(); })
        .def_prop_ro("assigned", [](const Self& self) { return self.search.assigned(); })
        .def_prop_ro("objective", [](const Self& self) { return self.search.objective(); })
        .def_prop_ro("n_empty", [](const Self& self) { return self.search.n_empty(); })
        .def_prop_ro("history", [](const Self& self) { return self.search.history(); })
        .def_prop_ro("converged", [](const Self& self) { return self.search.converged(); })
        .def_prop_ro("pass_work", [](const Self& self) { return self.search.pass_work(); })
        .def_prop_ro("work", [](const Self& self) { return self.search.work(); });
}

}  // namespace

void bind_search(nb::module_& m) {
    bind_one<LocalSearch>(m, "LocalSearch")
        .def("assign",
             [](Bound<LocalSearch>& self) {
                 nb::gil_scoped_release release;
                 self.search.label(Interrupts());
             })
        .def_prop_ro("n_near", [](const Bound<LocalSearch>& self) { return self.search.n_near(); });
    bind_one<Search>(m, "Search")
        .def(
            "grow",
            [](Bound<Search>& self, std::int64_t most) {
                nb::gil_scoped_release release;
                return self.search.grow(most, Interrupts());
            },
            "most"_a)
        .def(
            "shrink",
            [](Bound<Search>& self, std::int64_t count) {
                nb::gil_scoped_release release;
                self.search.shrink(count, Interrupts());
            },
            "count"_a);
}

}  // namespace quickmeans
