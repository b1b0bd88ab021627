// The largest or smallest entries of rows and columns.
#pragma once

#include <cstdint>

namespace quickmeans {

// kept[i, j] = 1 if the entry is among the `per_row` largest of its row or the `per_column` largest of its column (0:
// none are asked for), else 0. Of equals those with the lower index stay; not a number counts as nothing.
void mark_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t per_row,
                  std::int64_t per_column, unsigned char* kept);

// kept[i, j] = 1 for entries taken greedily, the largest absolute values first, while their row has fewer than
// `per_row` and their column fewer than `per_column`. Values that agree to single precision count as equal: of these
// the ones in the upper rows, then in the left columns come first. Zeros and what is not a number stay out. At most
// 2^32 entries.
void match_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t per_row,
                   std::int64_t per_column, unsigned char* kept);

// The k smallest numbers of every row in ascending order, of equals the one further left first, and their columns; k is
// at most n_columns, and no number is NaN.
void smallest(const float* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t k, float* values,
              std::int64_t* columns);

}  // namespace quickmeans
