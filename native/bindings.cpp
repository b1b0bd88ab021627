// The Python face of the native code. Arguments are checked in Python; here only what memory safety needs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

#include "dispatch.hpp"
#include "masked.hpp"
#include "parallel.hpp"
#include "product.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quickmeans {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

Scalar scalar_of(nb::dlpack::dtype dtype) {
    using Code = nb::dlpack::dtype_code;
    const int size = dtype.bits == 8 ? 0 : dtype.bits == 16 ? 1 : dtype.bits == 32 ? 2 : dtype.bits == 64 ? 3 : -1;
    require(size >= 0 && dtype.lanes == 1, "unsupported element type");
    switch (Code(dtype.code)) {
        case Code::Float:
            require(size > 0, "unsupported element type");
            return Scalar(int(Scalar::f16) + size - 1);
        case Code::Int:
            return Scalar(int(Scalar::i8) + size);
        case Code::UInt:
            return Scalar(int(Scalar::u8) + size);
        case Code::Bool:
            return Scalar::u8;
        default:
            throw std::invalid_argument("unsupported element type");
    }
}

RowsView view_of(const AnyArray& x, std::int64_t n_columns) {
    require(x.ndim() == 2 && std::int64_t(x.shape(1)) == n_columns, "rows do not fit the product");
    const std::int64_t size = std::int64_t(x.itemsize());
    return {static_cast<const char*>(x.data()),
            std::int64_t(x.shape(0)),
            n_columns,
            x.stride(0) * size,
            x.stride(1) * size,
            scalar_of(x.dtype())};
}

// Compressed sparse rows (n_columns, indptr, indices, values), or the values of a dense factor alone.
template <class T>
FactorSource<T> source_of(nb::handle factor) {
    if (!nb::isinstance<nb::tuple>(factor)) {
        const auto dense = nb::cast<Matrix<T>>(factor, false);
        return {std::int64_t(dense.shape(0)), std::int64_t(dense.shape(1)), nullptr, nullptr, dense.data()};
    }
    const nb::tuple parts = nb::borrow<nb::tuple>(factor);
    require(parts.size() == 4, "a sparse factor has four parts");
    const auto n_columns = nb::cast<std::int64_t>(parts[0]);
    const auto indptr = nb::cast<Vector<std::int64_t>>(parts[1], false);
    const auto indices = nb::cast<Vector<std::int32_t>>(parts[2], false);
    const auto values = nb::cast<Vector<T>>(parts[3], false);
    require(n_columns > 0 && n_columns < (std::int64_t(1) << 31), "number of columns out of range");
    require(indptr.size() > 0 && indptr.data()[0] == 0 && indices.size() == values.size() &&
                indptr.data()[indptr.size() - 1] == std::int64_t(values.size()),
            "inconsistent sparse factor");
    for (std::size_t i = 1; i < indptr.size(); ++i)
        require(indptr.data()[i - 1] <= indptr.data()[i], "inconsistent sparse factor");
    for (std::size_t e = 0; e < indices.size(); ++e)
        require(indices.data()[e] >= 0 && indices.data()[e] < n_columns, "column out of range");
    return {std::int64_t(indptr.size()) - 1, n_columns, indptr.data(), indices.data(), values.data()};
}

// Let Ctrl-C through ten times a second; called without the GIL.
class Interruptible {
  public:
    void operator()() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(100)) return;
        last_ = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }

  private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

template <class T>
std::int64_t run(const Product<T>& product, const Job<T>& job, int n_threads) {
    nb::gil_scoped_release release;
    return product.run(job, n_threads, Interruptible());
}

template <class T>
using Cells = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t kRows = 8;  // problems that a thread takes at a time

// Least squares on supports; see kernels/types.hpp for what is in and out.
void fit_supports(Matrix<double> gram, Matrix<double> targets, Vector<double> weights, Vector<std::int64_t> drop,
                  Cells<std::uint8_t> support, Cells<double> values, std::optional<Cells<double>> prices, int n_threads,
                  const std::string& isa) {
    const std::size_t n = targets.shape(0), r = targets.shape(1);
    const auto fits = [&](const auto& cells) { return cells.shape(0) == n && cells.shape(1) == r; };
    require(gram.shape(0) == r && gram.shape(1) == r, "wrong shape of gram");
    require(weights.size() == n && drop.size() == n, "wrong size of weights or drop");
    require(fits(support) && fits(values) && (!prices || fits(*prices)), "wrong shape of support, values or prices");
    const SupportJob job{std::int64_t(n), std::int64_t(r), gram.data(),
                         targets.data(),  weights.data(),  drop.data(),
                         support.data(),  values.data(),   prices ? prices->data() : nullptr};
    const FitRows fit_rows = find_fit_rows(isa);
    nb::gil_scoped_release release;
    const std::size_t count = std::size_t(std::max(n_threads, 1)), longest = r + kSupportPadding;
    std::vector<std::vector<double>> scratch(count, std::vector<double>(longest * (longest + 2 * kPivots)));
    std::vector<std::vector<std::int32_t>> order(count, std::vector<std::int32_t>(r));
    const auto chunk = [&](std::int64_t i, int thread) {
        const Range rows{i * kRows, std::min(kRows, job.n_rows - i * kRows)};
        fit_rows(job, rows, scratch[std::size_t(thread)].data(), order[std::size_t(thread)].data());
        return true;
    };
    for_each_chunk((job.n_rows + kRows - 1) / kRows, n_threads, chunk, Interruptible());
}

// out = rows times atoms (n x m times m x r) on the support, and zero elsewhere.
void masked_product(Matrix<double> rows, Matrix<double> atoms, Matrix<std::uint8_t> support, Cells<double> out,
                    int n_threads) {
    const std::int64_t n = std::int64_t(rows.shape(0)), m = std::int64_t(rows.shape(1)),
                       r = std::int64_t(atoms.shape(1));
    const auto fits = [&](const auto& cells) {
        return std::int64_t(cells.shape(0)) == n && std::int64_t(cells.shape(1)) == r;
    };
    require(std::int64_t(atoms.shape(0)) == m && fits(support) && fits(out), "wrong shape of atoms, support or out");
    nb::gil_scoped_release release;
    const SparseColumns columns(atoms.data(), m, r);
    const auto chunk = [&](std::int64_t i, int) {
        for (std::int64_t row = i * kRows; row < std::min(n, (i + 1) * kRows); ++row)
            for (std::int64_t j = 0; j < r; ++j)
                out.data()[row * r + j] = support.data()[row * r + j] ? columns.dot(j, rows.data() + row * m) : 0;
        return true;
    };
    for_each_chunk((n + kRows - 1) / kRows, n_threads, chunk, Interruptible());
}

template <class T>
void bind(nb::module_& m, const char* name) {
    using Out = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
    using Scores = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Labels = nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    nb::class_<Product<T>>(m, name)
        .def(
            "__init__",
            [](Product<T>* self, nb::list factors, const std::string& isa) {
                std::vector<FactorSource<T>> sources;
                for (nb::handle factor : factors) sources.push_back(source_of<T>(factor));
                require(!sources.empty(), "no factors");
                for (std::size_t q = 1; q < sources.size(); ++q)
                    require(sources[q - 1].n_columns == sources[q].n_rows, "factors do not chain");
                new (self) Product<T>(sources, isa);
            },
            "factors"_a, "isa"_a = "")
        .def(
            "apply",
            [](const Product<T>& self, const AnyArray& x, Out out, int n_threads) {
                Job<T> job{};
                job.rows = view_of(x, self.n_columns());
                require(out.shape(0) == x.shape(0) && std::int64_t(out.shape(1)) == self.n_rows(),
                        "wrong shape of out");
                require(out.stride(0) == 1 || out.stride(1) == 1 || out.size() == 0, "out must be contiguous");
                job.scores = out.data();
                job.score_row_step = out.stride(0);
                job.score_column_step = out.stride(1);
                run(self, job, n_threads);
            },
            "x"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a)
        .def(
            "apply_one",
            [](const Product<T>& self, const AnyArray& x,
               nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
                require(x.ndim() == 1 && std::int64_t(x.shape(0)) == self.n_columns(),
                        "the vector does not fit the product");
                require(std::int64_t(out.shape(0)) == self.n_rows(), "wrong shape of out");
                Job<T> job{};
                job.rows = {static_cast<const char*>(x.data()),
                            1,
                            self.n_columns(),
                            0,
                            x.stride(0) * std::int64_t(x.itemsize()),
                            scalar_of(x.dtype())};
                job.scores = out.data();
                job.score_column_step = 1;
                run(self, job, 1);
            },
            "x"_a.noconvert(), "out"_a.noconvert())
        .def(
            "nearest",
            [](const Product<T>& self, const AnyArray& x, Vector<T> offset, double largest_offset, Labels labels,
               Scores scores, int n_threads) {
                Job<T> job{};
                job.rows = view_of(x, self.n_columns());
                require(std::int64_t(offset.size()) == self.n_rows(), "wrong size of offset");
                require(labels.shape(0) == x.shape(0) && scores.shape(0) == x.shape(0),
                        "wrong shape of labels or scores");
                require(labels.shape(1) == scores.shape(1) && labels.shape(1) >= 1 &&
                            std::int64_t(labels.shape(1)) <= self.n_rows(),
                        "wrong shape of labels or scores");
                job.offset = offset.data();
                job.largest_offset = largest_offset;
                job.labels = labels.data();
                job.best = scores.data();
                job.n_best = std::int64_t(labels.shape(1));
                return run(self, job, n_threads);
            },
            "x"_a.noconvert(), "offset"_a.noconvert(), "largest_offset"_a, "labels"_a.noconvert(),
            "scores"_a.noconvert(), "n_threads"_a)
        .def_prop_ro("isa", &Product<T>::isa);
}

}  // namespace
}  // namespace quickmeans

NB_MODULE(_native, m) {
    m.doc() = "The native kernel of quickmeans: see quickmeans.transform.SparseProduct.";
    m.def("instruction_sets", &quickmeans::instruction_sets);
    m.def("fit_supports", &quickmeans::fit_supports, "gram"_a.noconvert(), "targets"_a.noconvert(),
          "weights"_a.noconvert(), "drop"_a.noconvert(), "support"_a.noconvert(), "values"_a.noconvert(),
          "prices"_a.noconvert().none(), "n_threads"_a, "isa"_a = "");
    m.def("masked_product", &quickmeans::masked_product, "rows"_a.noconvert(), "atoms"_a.noconvert(),
          "support"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    quickmeans::bind<float>(m, "Product32");
    quickmeans::bind<double>(m, "Product64");
}
