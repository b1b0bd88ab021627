// The nearest of many centers for rows that come in chunks.
#include "near_centers.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"

namespace quickmeans {
namespace {

// Keeps the centers alive.
struct Bound {
    Matrix<float> values;
    NearCenters centers;

    Bound(Matrix<float> c, int n_threads, const std::string& isa)
        : values(c),
          centers(checked(c).data(), std::int64_t(c.shape(0)), std::int64_t(c.shape(1)), n_threads,
                  find_instruction_set(isa), Interrupts()) {}

  private:
    static const Matrix<float>& checked(const Matrix<float>& c) {
        require(c.shape(0) > 0 && c.shape(1) > 0, "no centers");
        require(c.shape(0) < (std::size_t(1) << 31), "too many centers");
        return c;
    }
};

void assign(Bound& self, Matrix<float> rows, Line<std::int32_t> labels, Line<float> best, Line<float> norms, double far,
            std::uint32_t turn, int n_threads) {
    const auto n = std::int64_t(rows.shape(0));
    require(std::int64_t(rows.shape(1)) == self.centers.n_columns(), "wrong number of columns");
    require(has_size(labels, n) && has_size(best, n) && has_size(norms, n), "wrong size of results");
    nb::gil_scoped_release release;
    self.centers.assign({rows.data(), n, labels.data(), best.data(), norms.data()}, far, turn, n_threads, Interrupts());
}

}  // namespace

void bind_near_centers(nb::module_& m) {
    nb::class_<Bound>(m, "NearCenters")
        .def(nb::init<Matrix<float>, int, const std::string&>(), "centers"_a.noconvert(), "n_threads"_a, "isa"_a)
        .def("assign", &assign, "rows"_a.noconvert(), "labels"_a.noconvert(), "best"_a.noconvert(),
             "norms"_a.noconvert(), "far"_a, "turn"_a, "n_threads"_a);
}

}  // namespace quickmeans
