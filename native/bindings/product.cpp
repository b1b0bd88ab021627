// A product of sparse factors: Product32 and Product64.
#include "product.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kLongestSide = (std::int64_t(1) << 31) - 1;

// A factor as a tuple of compressed sparse rows (n_columns, indptr, indices, values), or as a dense matrix.
template <class T>
FactorSource<T> source_of(nb::handle factor) {
    if (!nb::isinstance<nb::tuple>(factor)) {
        const auto dense = array_in<Matrix<T>>(factor, "a dense factor must be a contiguous matrix of the right type");
        const auto n_rows = std::int64_t(dense.shape(0)), n_columns = std::int64_t(dense.shape(1));
        require(n_rows > 0 && n_rows <= kLongestSide, "number of rows out of range");
        require(n_columns > 0 && n_columns <= kLongestSide, "number of columns out of range");
        return {n_rows, n_columns, nullptr, nullptr, dense.data()};
    }
    const nb::tuple parts = nb::borrow<nb::tuple>(factor);
    require(parts.size() == 4, "a sparse factor has four parts");
    const auto n_columns = nb::cast<std::int64_t>(parts[0]);
    const auto indptr = array_in<Vector<std::int64_t>>(parts[1], "indptr must be a contiguous array of int64");
    const auto indices = array_in<Vector<std::int32_t>>(parts[2], "indices must be a contiguous array of int32");
    const auto values = array_in<Vector<T>>(parts[3], "values must be a contiguous array of the right type");
    const std::int64_t n_rows = std::int64_t(indptr.size()) - 1, n_entries = std::int64_t(values.size());
    require(n_rows > 0 && n_rows <= kLongestSide, "number of rows out of range");
    require(n_columns > 0 && n_columns <= kLongestSide, "number of columns out of range");
    require(indptr.data()[0] == 0 && indptr.data()[n_rows] == n_entries && has_size(indices, n_entries),
            "inconsistent sparse factor");
    for (std::int64_t i = 0; i < n_rows; ++i)
        require(indptr.data()[i] <= indptr.data()[i + 1] && indptr.data()[i + 1] - indptr.data()[i] <= n_columns,
                "inconsistent sparse factor");
    for (std::int64_t e = 0; e < n_entries; ++e)
        require(indices.data()[e] >= 0 && indices.data()[e] < n_columns, "column out of range");
    return {n_rows, n_columns, indptr.data(), indices.data(), values.data()};
}

template <class T>
void construct(Product<T>* self, nb::list factors, const std::string& isa) {
    std::vector<FactorSource<T>> sources;
    for (nb::handle factor : factors) sources.push_back(source_of<T>(factor));
    require(!sources.empty(), "no factors");
    for (std::size_t q = 1; q < sources.size(); ++q)
        require(sources[q - 1].n_columns == sources[q].n_rows, "factors do not chain");
    nb::gil_scoped_release release;
    new (self) Product<T>(sources, isa, Interrupts());
}

// out = x V'; out is contiguous in one direction or the other.
template <class T>
void apply(const Product<T>& self, const AnyArray& x, nb::ndarray<T, nb::ndim<2>, nb::device::cpu> out, int n_threads) {
    ProductJob<T> job{};
    job.rows = view_of(x, self.n_columns());
    require(has_shape(out, job.rows.n_rows, self.n_rows()), "wrong shape of out");
    require(out.size() == 0 || (out.stride(1) == 1 && out.stride(0) >= self.n_rows()) ||
                (out.stride(0) == 1 && out.stride(1) >= job.rows.n_rows),
            "out must be contiguous");
    job.scores = out.data();
    job.score_row_step = out.stride(0);
    job.score_column_step = out.stride(1);
    nb::gil_scoped_release release;
    self.run(job, 1, n_threads, Interrupts());
}

// out = V x.
template <class T>
void apply_one(const Product<T>& self, const AnyArray& x, Line<T> out) {
    require(x.ndim() == 1 && has_size(x, self.n_columns()), "the vector does not fit the product");
    require(has_size(out, self.n_rows()), "wrong size of out");
    ProductJob<T> job{};
    job.rows = {.data = static_cast<const char*>(x.data()),
                .n_rows = 1,
                .n_columns = self.n_columns(),
                .row_stride = 0,
                .column_stride = x.stride(0) * std::int64_t(x.itemsize()),
                .scalar = scalar_of(x.dtype()),
                .index = nullptr,
                .end = nullptr};
    job.scores = out.data();
    job.score_column_step = 1;
    nb::gil_scoped_release release;
    self.run(job, 1, 1, Interrupts());
}

// For every row the largest scores <x, v_k> + offset_k, as many as `labels` has columns. Returns as Product::run.
template <class T>
std::int64_t nearest(const Product<T>& self, const AnyArray& x, Vector<T> offset, double largest_offset,
                     Cells<std::int64_t> labels, Cells<T> scores, int n_threads) {
    ProductJob<T> job{};
    job.rows = view_of(x, self.n_columns());
    const std::int64_t m = std::int64_t(labels.shape(1));
    require(has_size(offset, self.n_rows()), "wrong size of offset");
    require(
        has_shape(labels, job.rows.n_rows, m) && has_shape(scores, job.rows.n_rows, m) && m >= 1 && m <= self.n_rows(),
        "wrong shape of labels or scores");
    job.offset = offset.data();
    job.largest_offset = largest_offset;
    job.labels = labels.data();
    job.best = scores.data();
    job.n_best = job.n_listed = m;
    nb::gil_scoped_release release;
    return self.run(job, 1, n_threads, Interrupts());
}

// Gaussian kernel values; see GaussianJob. Returns as Product::run.
template <class T>
std::int64_t gaussian(const Product<T>& self, const AnyArray& x, Vector<T> mean, Vector<T> offset,
                      double largest_offset, double gamma, Cells<T> out, int n_threads) {
    GaussianJob<T> job{};
    job.product.rows = view_of(x, self.n_columns());
    require(has_size(mean, self.n_columns()), "wrong size of mean");
    require(has_size(offset, self.n_rows()), "wrong size of offset");
    require(has_shape(out, job.product.rows.n_rows, self.n_rows()), "wrong shape of out");
    job.product.offset = offset.data();
    job.product.largest_offset = largest_offset;
    job.product.scores = out.data();
    job.product.score_row_step = self.n_rows();
    job.product.score_column_step = 1;
    job.mean = mean.data();
    job.gamma = T(gamma);
    nb::gil_scoped_release release;
    return self.run(job, n_threads, Interrupts());
}

template <class T>
void bind(nb::module_& m, const char* name) {
    nb::class_<Product<T>>(m, name)
        .def("__init__", &construct<T>, "factors"_a, "isa"_a)
        .def("apply", &apply<T>, "x"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a)
        .def("apply_one", &apply_one<T>, "x"_a.noconvert(), "out"_a.noconvert())
        .def("nearest", &nearest<T>, "x"_a.noconvert(), "offset"_a.noconvert(), "largest_offset"_a,
             "labels"_a.noconvert(), "scores"_a.noconvert(), "n_threads"_a)
        .def("gaussian", &gaussian<T>, "x"_a.noconvert(), "mean"_a.noconvert(), "offset"_a.noconvert(),
             "largest_offset"_a, "gamma"_a, "out"_a.noconvert(), "n_threads"_a)
        .def_prop_ro("isa", &Product<T>::isa);
}

}  // namespace

void bind_product(nb::module_& m) {
    bind<float>(m, "Product32");
    bind<double>(m, "Product64");
}

}  // namespace quickmeans
