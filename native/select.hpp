// The largest entries of rows and columns.
#pragma once

#include "kernels/types.hpp"

namespace quickmeans {

// kept[i, j] = 1 if the absolute value of the entry is among the `per_row` largest of its row or the `per_column`
// largest of its column, else 0. Rows of M are `stride` apart, those of kept n_columns. Of equals those with the lower
// index are kept. NaN counts as zero.
void mark_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t stride,
                  std::int64_t per_row, std::int64_t per_column, unsigned char* kept, const Poll& poll);

// kept[i, j] = 1 for entries chosen greedily, the largest absolute values first, while their row has fewer than
// `per_row` and their column fewer than `per_column`. Values that agree in single precision count as equal: the lower
// row comes first, then the lower column. Zeros and NaN are never chosen. M has at most 2^32 entries.
void match_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t stride,
                   std::int64_t per_row, std::int64_t per_column, unsigned char* kept, const Poll& poll);

}  // namespace quickmeans
