// The largest entries of rows and columns.
#include "arrays.hpp"
#include "bindings.hpp"
#include "select.hpp"

namespace quickmeans {
namespace {

template <auto Choice>
void choose(Matrix<double> M, std::int64_t per_row, std::int64_t per_column, Cells<bool> kept) {
    const auto n = std::int64_t(M.shape(0)), m = std::int64_t(M.shape(1));
    require(has_shape(kept, n, m), "wrong shape of kept");
    require(M.size() < (std::size_t(1) << 32), "too many entries");
    require(per_row >= 0 && per_column >= 0, "per_row and per_column must not be negative");
    nb::gil_scoped_release release;
    Choice(M.data(), n, m, m, per_row, per_column, reinterpret_cast<unsigned char*>(kept.data()), Interrupts());
}

}  // namespace

void bind_selection(nb::module_& m) {
    m.def("mark_largest", &choose<mark_largest>, "M"_a.noconvert(), "per_row"_a, "per_column"_a, "kept"_a.noconvert());
    m.def("match_largest", &choose<match_largest>, "M"_a.noconvert(), "per_row"_a, "per_column"_a,
          "kept"_a.noconvert());
}

}  // namespace quickmeans
