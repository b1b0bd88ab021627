// The non-zeros of a matrix, row by row and column by column.
#pragma once

#include <cstdint>
#include <vector>

namespace quickmeans {

struct Entries {
    std::int64_t n_rows, n_columns;
    std::vector<std::int64_t> row_start, column_start;
    std::vector<std::int64_t> by_column;      // the places of the entries of the first column, then of the second, ...
    std::vector<std::int32_t> row, column;    // of the entries, row by row
    std::vector<std::int32_t> row_by_column;  // row[by_column[e]]
    std::vector<double> values, value_by_column;

    Entries(const double* S, std::int64_t n, std::int64_t m) : n_rows(n), n_columns(m), row_start{0} {
        column_start.assign(std::size_t(m) + 1, 0);
        for (std::int64_t i = 0; i < n; ++i) {
            for (std::int64_t j = 0; j < m; ++j)
                if (S[i * m + j] != 0) {
                    row.push_back(std::int32_t(i));
                    column.push_back(std::int32_t(j));
                    values.push_back(S[i * m + j]);
                    ++column_start[std::size_t(j) + 1];
                }
            row_start.push_back(std::int64_t(row.size()));
        }
        for (std::size_t j = 0; j < std::size_t(m); ++j) column_start[j + 1] += column_start[j];
        by_column.resize(row.size());
        row_by_column.resize(row.size());
        value_by_column.resize(row.size());
        std::vector<std::int64_t> next(column_start.begin(), column_start.end() - 1);
        for (std::size_t e = 0; e < row.size(); ++e) {
            const std::size_t place = std::size_t(next[std::size_t(column[e])]++);
            by_column[place] = std::int64_t(e);
            row_by_column[place] = row[e];
            value_by_column[place] = values[e];
        }
    }
    std::size_t size() const { return row.size(); }
};

}  // namespace quickmeans
