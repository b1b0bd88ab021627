// Rows in CSR form, their centers, and Lloyd's iteration over them.
#include "csr.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "csr_clusters.hpp"
#include "dispatch.hpp"

namespace quickmeans {
namespace {

using Weights = std::optional<Vector<double>>;

// Rows whose arrays are checked once and kept alive.
struct Rows {
    nb::object starts, columns, values;
    CsrView view{};
    bool distinct = false;

    Rows(nb::object s, nb::object c, nb::object v, std::int64_t n_columns) : starts(s), columns(c), values(v) {
        require(n_columns > 0, "wrong number of columns");
        view.n_columns = n_columns;
        const std::int64_t n_starts =
            line_in<std::int32_t, std::int64_t>(s, view.starts, view.wide_columns, "row pointers of int32 or int64");
        bool wide = false;
        const std::int64_t n_columns_in =
            line_in<std::int32_t, std::int64_t>(c, view.columns, wide, "columns of int32 or int64");
        const std::int64_t n_values =
            line_in<float, double>(v, view.values, view.wide_values, "values of float32 or float64");
        require(wide == view.wide_columns, "row pointers and columns must be of one type");
        require(n_starts > 0 && n_columns_in == n_values, "wrong sizes of the arrays of X");
        view.n_rows = n_starts - 1;
        nb::gil_scoped_release release;
        distinct = check_csr(view, n_values, Interrupts());
    }

    void require_distinct() const { require(distinct, "a row of X has two entries in one column"); }

  private:
    template <class Narrow, class Wide>
    static std::int64_t line_in(nb::handle array, const void*& data, bool& wide, const char* message) {
        Vector<Narrow> narrow;
        wide = !nb::try_cast<Vector<Narrow>>(array, narrow, false);
        if (!wide) {
            data = narrow.data();
            return std::int64_t(narrow.size());
        }
        const auto line = array_in<Vector<Wide>>(array, message);
        data = line.data();
        return std::int64_t(line.size());
    }
};

template <class T>
using Centers = CsrCenters<T>;

template <class T>
Centers<T> make_centers(Matrix<T> centers, Vector<double> offset, int n_threads, const std::string& isa) {
    const auto K = std::int64_t(centers.shape(0)), D = std::int64_t(centers.shape(1));
    require(K > 0 && D > 0 && K < (std::int64_t(1) << 31), "wrong shape of centers");
    require(has_size(offset, K), "wrong size of offset");
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    Centers<T> result(K, D, set);
    result.fill(centers.data(), offset.data(), n_threads, Interrupts());
    return result;
}

// Returns -1, or the number of the first row whose scores are not finite.
template <class T>
std::int64_t nearest(const Rows& self, const Centers<T>& centers, Line<std::int32_t> labels, int n_threads) {
    self.require_distinct();
    require(centers.n_columns() == self.view.n_columns, "rows do not fit the centers");
    require(sizeof(T) == 8 || !self.view.wide_values, "rows of float64 need centers of float64");
    require(has_size(labels, self.view.n_rows), "wrong size of labels");
    nb::gil_scoped_release release;
    return csr_nearest<T>(self.view, centers, labels.data(), nullptr, nullptr, n_threads, Interrupts());
}

// Weighted sums of the columns and, about the means of these, of squares.
void moments(const Rows& self, const Weights& weights, Line<double> mean, Line<double> squares) {
    self.require_distinct();
    const std::int64_t n = self.view.n_rows, D = self.view.n_columns;
    require(!weights || has_size(*weights, n), "wrong size of weights");
    require(has_size(mean, D) && has_size(squares, D), "wrong size of the moments");
    const double* const w = weights ? weights->data() : nullptr;
    nb::gil_scoped_release release;
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += w ? w[i] : 1.0;
    std::fill_n(mean.data(), D, 0.0);
    std::fill_n(squares.data(), D, 0.0);
    csr_sums(self.view, w, mean.data(), Interrupts());
    for (std::int64_t d = 0; d < D; ++d) mean.data()[d] /= total;
    csr_squares(self.view, w, mean.data(), squares.data(), Interrupts());
}

void norms(const Rows& self, Vector<double> mean, Line<double> out, int n_threads) {
    self.require_distinct();
    require(has_size(mean, self.view.n_columns) && has_size(out, self.view.n_rows), "wrong size of mean or norms");
    nb::gil_scoped_release release;
    csr_norms(self.view, mean.data(), out.data(), n_threads, Interrupts());
}

CsrGeometry geometry(const Rows& rows, const Vector<double>& mean, const Vector<double>& norms,
                     const Matrix<double>& centers, bool spherical) {
    rows.require_distinct();
    require(has_size(mean, rows.view.n_columns) && has_size(norms, rows.view.n_rows), "wrong size of mean or norms");
    require(centers.shape(0) > 0 && std::int64_t(centers.shape(1)) == rows.view.n_columns, "wrong shape of centers");
    return {mean.data(), norms.data(), centers.data(), std::int64_t(centers.shape(0)), spherical};
}

void own_squares(const Rows& self, Vector<double> mean, Vector<double> norms, Matrix<double> centers, bool spherical,
                 Vector<std::int32_t> labels, Line<double> out, int n_threads) {
    const CsrGeometry g = geometry(self, mean, norms, centers, spherical);
    require(has_size(labels, self.view.n_rows) && has_size(out, self.view.n_rows), "wrong size of labels or squares");
    for (std::int64_t i = 0; i < self.view.n_rows; ++i)
        require(labels.data()[i] >= 0 && labels.data()[i] < g.n_centers, "label out of range");
    nb::gil_scoped_release release;
    csr_own_squares(self.view, g, labels.data(), out.data(), n_threads, Interrupts());
}

template <class Out>
void distances(const Rows& self, Vector<double> mean, Vector<double> norms, Matrix<double> centers, bool spherical,
               Cells<Out> out, int n_threads, const std::string& isa) {
    const CsrGeometry g = geometry(self, mean, norms, centers, spherical);
    require(has_shape(out, self.view.n_rows, g.n_centers), "wrong shape of distances");
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    csr_distances(self.view, g, set, out.data(), n_threads, Interrupts());
}

std::int64_t choose_seeds(const Rows& self, Vector<std::int64_t> index, Vector<double> weights, std::int64_t first,
                          Matrix<double> uniforms, Line<std::int64_t> chosen, int n_threads, const std::string& isa) {
    const auto n = std::int64_t(index.size()), n_centers = std::int64_t(chosen.size());
    const auto n_trials = std::int64_t(uniforms.shape(1));
    self.require_distinct();
    require(has_size(weights, n), "wrong size of weights");
    require(n_centers > 0 && n_trials > 0 && has_shape(uniforms, n_centers, n_trials), "wrong shape of uniforms");
    require(first >= 0 && first < n, "first out of range");
    for (std::int64_t i = 0; i < n; ++i)
        require(index.data()[i] >= 0 && index.data()[i] < self.view.n_rows, "row out of range");
    const InstructionSet& set = find_instruction_set(isa);
    nb::gil_scoped_release release;
    return csr_seed(self.view, index.data(), n, weights.data(), first, uniforms.data(), n_centers, n_trials,
                    chosen.data(), set, n_threads, Interrupts());
}

// Clusters that keep their rows alive.
template <class T>
struct BoundClusters {
    Rows rows;
    Vector<double> mean, norms;
    Weights weights, sum_weights;
    CsrClusters<T> clusters;

    BoundClusters(const Rows& r, Vector<double> m, Vector<double> q, const Weights& w, const Weights& s, double scatter,
                  bool spherical, Matrix<double> centers, int n_threads, const std::string& isa)
        : rows(r),
          mean(m),
          norms(q),
          weights(w),
          sum_weights(s),
          clusters(problem(scatter, spherical, centers), centers.data(), std::int64_t(centers.shape(0)),
                   find_instruction_set(isa), n_threads, Interrupts()) {}

  private:
    CsrProblem problem(double scatter, bool spherical, const Matrix<double>& centers) const {
        const std::int64_t n = rows.view.n_rows;
        geometry(rows, mean, norms, centers, spherical);
        require(sizeof(T) == 8 || !rows.view.wide_values, "rows of float64 need clusters of float64");
        require(n > 0 && centers.shape(0) < (std::size_t(1) << 31), "no rows, or too many centers");
        require((!weights || has_size(*weights, n)) && (!sum_weights || has_size(*sum_weights, n)),
                "wrong size of weights");
        return {rows.view,
                mean.data(),
                norms.data(),
                weights ? weights->data() : nullptr,
                sum_weights ? sum_weights->data() : nullptr,
                scatter,
                spherical};
    }
};

template <class T>
std::int64_t iterate(BoundClusters<T>& self, double tol) {
    nb::gil_scoped_release release;
    return self.clusters.iterate(tol, Interrupts());
}

template <class T>
void centers_of(const BoundClusters<T>& self, Cells<double> out) {
    require(has_shape(out, self.clusters.n_centers(), self.clusters.n_columns()), "wrong shape of centers");
    self.clusters.centers(out.data());
}

template <class T>
void bind(nb::module_& m, nb::class_<Rows>& rows, const char* centers, const char* clusters) {
    nb::class_<Centers<T>>(m, centers)
        .def_static("bind", &make_centers<T>, "centers"_a.noconvert(), "offset"_a.noconvert(), "n_threads"_a, "isa"_a);
    rows.def("nearest", &nearest<T>, "centers"_a, "labels"_a.noconvert(), "n_threads"_a);
    rows.def("distances", &distances<T>, "mean"_a.noconvert(), "norms"_a.noconvert(), "centers"_a.noconvert(),
             "spherical"_a, "out"_a.noconvert(), "n_threads"_a, "isa"_a);
    using Clusters = BoundClusters<T>;
    nb::class_<Clusters>(m, clusters)
        .def(nb::init<const Rows&, Vector<double>, Vector<double>, const Weights&, const Weights&, double, bool,
                      Matrix<double>, int, const std::string&>(),
             "rows"_a, "mean"_a.noconvert(), "norms"_a.noconvert(), "weights"_a.noconvert().none(),
             "sum_weights"_a.noconvert().none(), "scatter"_a, "spherical"_a, "centers"_a.noconvert(), "n_threads"_a,
             "isa"_a)
        .def("iterate", &iterate<T>, "tol"_a)
        .def("centers", &centers_of<T>, "out"_a.noconvert())
        .def_prop_ro("assigned", [](const Clusters& self) { return self.clusters.assigned(); })
        .def_prop_ro("objective", [](const Clusters& self) { return self.clusters.objective(); })
        .def_prop_ro("converged", [](const Clusters& self) { return self.clusters.converged(); })
        .def_prop_ro("n_compared", [](const Clusters& self) { return self.clusters.n_compared(); });
}

}  // namespace

void bind_csr(nb::module_& m) {
    nb::class_<Rows> rows(m, "CsrRows");
    rows.def(nb::init<nb::object, nb::object, nb::object, std::int64_t>(), "starts"_a, "columns"_a, "values"_a,
             "n_columns"_a)
        .def_ro("distinct", &Rows::distinct)
        .def("moments", &moments, "weights"_a.noconvert().none(), "mean"_a.noconvert(), "squares"_a.noconvert())
        .def("norms", &norms, "mean"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a)
        .def("own_squares", &own_squares, "mean"_a.noconvert(), "norms"_a.noconvert(), "centers"_a.noconvert(),
             "spherical"_a, "labels"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a)
        .def("seed", &choose_seeds, "index"_a.noconvert(), "weights"_a.noconvert(), "first"_a, "uniforms"_a.noconvert(),
             "chosen"_a.noconvert(), "n_threads"_a, "isa"_a);
    bind<float>(m, rows, "CsrCenters32", "CsrClusters32");
    bind<double>(m, rows, "CsrCenters64", "CsrClusters64");
}

}  // namespace quickmeans
