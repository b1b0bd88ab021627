// Rows in CSR form: what the kernels of csr.hpp read and write.
#pragma once

#include <cstdint>

namespace quickmeans {

// The entries of row i are starts[i] ... starts[i + 1] - 1 of columns and values; its columns are different.
struct CsrView {
    std::int64_t n_rows;
    std::int64_t n_columns;
    const void* starts;   // n_rows + 1 of int64 if wide_columns, else of int32
    const void* columns;  // of the same type
    const void* values;   // of float64 if wide_values, else of float32
    bool wide_columns;
    bool wide_values;
};

// Centers, column by column: number d of center k is values[d * stride + k]. The score of center k is <x, c_k> +
// offset[k]. The stride fills whole vectors; centers past the last are zeros whose offset is lower than all scores.
template <class T>
struct CsrTable {
    const T* values;
    const T* offset;
    std::int64_t n_columns;
    std::int64_t n_centers;
    std::int64_t stride;
};

// The nearest center of every row (see csr.hpp). Results have the place of their row.
template <class T>
struct CsrNearestJob {
    CsrView rows;
    CsrTable<T> table;
    const std::int64_t* index;  // the rows to look at, or null for all
    std::int32_t* labels;       // OUT
    T* best;                    // OUT  the score of the label, or null
    T* second;                  // OUT  the largest score of another center, or null; very low if there is none
};

}  // namespace quickmeans
