// Distances of rows from centers: Distances32 and Distances64, and squared distances from the own centers.
#include "distances.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "dispatch.hpp"

namespace quickmeans {
namespace {

template <class T>
void construct(Distances<T>* self, Matrix<T> centers, Vector<double> mean, bool spherical, const std::string& isa) {
    const auto n_centers = std::int64_t(centers.shape(0)), n_columns = std::int64_t(centers.shape(1));
    require(n_centers > 0 && n_columns > 0, "wrong shape of centers");
    require(has_size(mean, n_columns), "wrong size of mean");
    nb::gil_scoped_release release;
    new (self) Distances<T>(centers.data(), n_centers, n_columns, mean.data(), spherical, isa, Interrupts());
}

// out[i, k] = |x_i - u_k|; returns as Distances::run.
template <class T, class Out>
std::int64_t compute(const Distances<T>& self, const AnyArray& x, Cells<Out> out, int n_threads) {
    const RowsView rows = view_of(x, self.n_columns());
    require(has_shape(out, rows.n_rows, self.n_centers()), "wrong shape of out");
    nb::gil_scoped_release release;
    return self.run(rows, out.data(), sizeof(Out) < sizeof(T), n_threads, Interrupts());
}

// out[i] = |x_i - shift - u|^2 for the center u that labels[i] names; see DifferenceJob.
template <class Label>
void differences(const AnyArray& x, Vector<Label> labels, Matrix<double> centers,
                 const std::optional<Vector<double>>& shift, bool spherical, Line<double> out, int n_threads,
                 const std::string& isa) {
    const auto n_centers = std::int64_t(centers.shape(0)), n_columns = std::int64_t(centers.shape(1));
    const RowsView rows = view_of(x, n_columns);
    require(has_size(labels, rows.n_rows), "wrong size of labels");
    require(!shift || has_size(*shift, n_columns), "wrong size of shift");
    require(has_size(out, rows.n_rows) && n_columns > 0, "wrong size of out");
    require(n_centers < (std::int64_t(1) << 31), "too many centers");
    for (std::int64_t i = 0; i < rows.n_rows; ++i)
        require(labels.data()[i] >= 0 && labels.data()[i] < n_centers, "a label is out of range");
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    std::vector<std::int32_t> copy;
    const std::int32_t* own = nullptr;
    if constexpr (sizeof(Label) == 4) {
        own = labels.data();
    } else {
        copy.assign(labels.data(), labels.data() + labels.size());
        own = copy.data();
    }
    const DifferenceJob job{.rows = rows,
                            .labels = own,
                            .centers = centers.data(),
                            .shift = shift ? shift->data() : nullptr,
                            .spherical = spherical,
                            .out = out.data()};
    squared_differences(job, set, n_threads, Interrupts());
}

template <class T>
void bind(nb::module_& m, const char* name) {
    nb::class_<Distances<T>> bound(m, name);
    bound.def("__init__", &construct<T>, "centers"_a.noconvert(), "mean"_a.noconvert(), "spherical"_a, "isa"_a);
    bound.def("compute", &compute<T, T>, "x"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    if constexpr (sizeof(T) == 8)
        bound.def("compute", &compute<T, float>, "x"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <class Label>
void bind_differences(nb::module_& m) {
    m.def("squared_differences", &differences<Label>, "x"_a.noconvert(), "labels"_a.noconvert(),
          "centers"_a.noconvert(), "shift"_a.noconvert().none(), "spherical"_a, "out"_a.noconvert(), "n_threads"_a,
          "isa"_a);
}

}  // namespace

void bind_distances(nb::module_& m) {
    bind<float>(m, "Distances32");
    bind<double>(m, "Distances64");
    bind_differences<std::int32_t>(m);
    bind_differences<std::int64_t>(m);
}

}  // namespace quickmeans
