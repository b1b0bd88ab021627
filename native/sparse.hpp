// The non-zeros of a matrix, row by row and column by column.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "dispatch.hpp"

namespace quickmeans {

class Entries {
  public:
    std::int64_t n_rows, n_columns;
    std::vector<std::int64_t> row_start, column_start;
    std::vector<std::int64_t> by_column;      // the places of the entries of the first column, then of the second, ...
    std::vector<std::int32_t> row, column;    // of the entries, row by row
    std::vector<std::int32_t> row_by_column;  // row[by_column[e]]
    std::vector<double> values, value_by_column;
    Refine refine;  // of the instruction set that it was made for
    SparseTimes times;

    // Of a dense matrix. If it has more than `most`, no more than these are found, and one.
    Entries(const double* S, std::int64_t n, std::int64_t m, std::size_t most, const std::string& isa)
        : n_rows(n),
          n_columns(m),
          row_start{0},
          refine(find_routines(isa).refine),
          times(find_routines(isa).sparse_times) {
        for (std::int64_t i = 0; i < n && size() <= most; ++i) {
            find(S + i * m, std::int32_t(i));
            row_start.push_back(std::int64_t(size()));
        }
        if (size() <= most) arrange();
    }
    std::size_t size() const { return row.size(); }

    void set_values(std::vector<double> updated) {
        values = std::move(updated);
        for (std::size_t a = 0; a < size(); ++a) value_by_column[a] = values[std::size_t(by_column[a])];
    }

  private:
    // The non-zeros of one row; most stretches of eight have none.
    void find(const double* s, std::int32_t i) {
        constexpr std::int64_t kStretch = 8;
        for (std::int64_t first = 0; first < n_columns; first += kStretch) {
            const std::int64_t end = first + kStretch < n_columns ? first + kStretch : n_columns;
            bool any = false;
            if (end == first + kStretch)
                for (int j = 0; j < kStretch; ++j) any |= s[first + j] != 0;
            else
                any = true;
            for (std::int64_t j = first; any && j < end; ++j)
                if (s[j] != 0) {
                    row.push_back(i);
                    column.push_back(std::int32_t(j));
                    values.push_back(s[j]);
                }
        }
    }
    void arrange() {
        column_start.assign(std::size_t(n_columns) + 1, 0);
        by_column.resize(size());
        row_by_column.resize(size());
        value_by_column.resize(size());
        for (const std::int32_t j : column) ++column_start[std::size_t(j) + 1];
        for (std::size_t j = 0; j < std::size_t(n_columns); ++j) column_start[j + 1] += column_start[j];
        std::vector<std::int64_t> next(column_start.begin(), column_start.end() - 1);
        for (std::size_t e = 0; e < size(); ++e) {
            const std::size_t place = std::size_t(next[std::size_t(column[e])]++);
            by_column[place] = std::int64_t(e);
            row_by_column[place] = row[e];
            value_by_column[place] = values[e];
        }
    }
};

}  // namespace quickmeans
