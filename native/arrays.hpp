// Arrays from Python as the kernels see them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <optional>
#include <stdexcept>

#include "kernels/types.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quickmeans {

// To be read.
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// To be written to.
template <class T>
using Line = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Cells = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// The array that the object is, not a copy of it.
template <class Array>
Array array_in(nb::handle object, const char* message) {
    Array array;
    if (!nb::try_cast<Array>(object, array, false)) throw nb::type_error(message);
    return array;
}

template <class Array>
bool has_shape(const Array& array, std::int64_t n, std::int64_t m) {
    return std::int64_t(array.shape(0)) == n && std::int64_t(array.shape(1)) == m;
}

template <class Array>
bool has_size(const Array& array, std::int64_t n) {
    return std::int64_t(array.size()) == n;
}

inline Scalar scalar_of(nb::dlpack::dtype dtype) {
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

inline RowsView view_of(const AnyArray& x, std::int64_t n_columns) {
    require(x.ndim() == 2 && std::int64_t(x.shape(1)) == n_columns, "rows do not fit the product");
    const std::int64_t size = std::int64_t(x.itemsize()), n = std::int64_t(x.shape(0));
    const std::int64_t row = x.stride(0) * size, column = x.stride(1) * size;
    const auto* const data = static_cast<const char*>(x.data());
    const char* const end =
        n > 0 && row > 0 && column > 0 ? data + (n - 1) * row + (n_columns - 1) * column + size : nullptr;
    return {data, n, n_columns, row, column, scalar_of(x.dtype()), nullptr, end};
}

// The rows that the index names, if there is one.
inline RowsView view_of(const AnyArray& x, std::int64_t n_columns, const std::optional<Vector<std::int64_t>>& index) {
    RowsView rows = view_of(x, n_columns);
    if (!index) return rows;
    for (std::int64_t i = 0, last = -1; i < std::int64_t(index->size()); last = index->data()[i++])
        require(index->data()[i] > last && index->data()[i] < rows.n_rows,
                "index must hold row numbers in ascending order");
    rows.n_rows = std::int64_t(index->size());
    rows.index = index->data();
    return rows;
}

// Lets Ctrl-C through: calls Python's handlers if the last call was a tenth of a second ago. Called without the GIL.
class Interrupts {
  public:
    operator Poll() { return {call, this}; }

  private:
    static void call(void* self) {
        auto& last = static_cast<Interrupts*>(self)->last_;
        const auto now = std::chrono::steady_clock::now();
        if (now - last < std::chrono::milliseconds(100)) return;
        last = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace quickmeans
