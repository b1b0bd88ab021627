// Rows in float32, one after the other, as the kernels read them.
#pragma once

#include "kernels/types.hpp"

namespace quickmeans {

// All rows, or those of an index.
inline RowsView float_rows(const float* rows, std::int64_t n, std::int64_t n_columns, const std::int64_t* index) {
    const auto size = std::int64_t(sizeof(float));
    const auto* const data = reinterpret_cast<const char*>(rows);
    return {data, n, n_columns, n_columns * size, size, Scalar::f32, index, data + n * n_columns * size};
}

}  // namespace quickmeans
