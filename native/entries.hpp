// The non-zeros of a matrix, in row order and in column order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/pacer.hpp"

namespace quickmeans {

class Entries {
  public:
    std::int64_t n_rows, n_columns;
    std::vector<std::int64_t> row_start, column_start;
    std::vector<std::int64_t> by_column;      // the entries in column order
    std::vector<std::int32_t> row, column;    // of each entry, in row order
    std::vector<std::int32_t> row_by_column;  // row[by_column[e]]
    std::vector<double> values, value_by_column;
    const Routines* routines;

    // The non-zeros of a dense matrix. If there are more than `most`, the search ends after the row that exceeds it,
    // and the entries are only good to be counted.
    Entries(const double* S, std::int64_t n, std::int64_t m, std::size_t most, const Routines& of, const Poll& poll)
        : n_rows(n), n_columns(m), row_start{0}, routines(&of) {
        Pacer pacer{poll};
        for (std::int64_t i = 0; i < n && size() <= most; ++i, pacer.did(m)) {
            add_row(S + i * m, std::int32_t(i));
            row_start.push_back(std::int64_t(size()));
        }
        if (size() <= most) sort_by_column();
    }
    std::size_t size() const { return row.size(); }
    bool is_complete() const { return column_start.size() == std::size_t(n_columns) + 1; }

    void set_values(std::vector<double> updated) {
        values = std::move(updated);
        for (std::size_t a = 0; a < size(); ++a) value_by_column[a] = values[std::size_t(by_column[a])];
    }

  private:
    // The non-zeros of row i. Entries are tested eight at a time, a line of the cache, because most such groups are
    // zero.
    void add_row(const double* s, std::int32_t i) {
        constexpr std::int64_t kGroup = 8;
        for (std::int64_t first = 0; first < n_columns; first += kGroup) {
            const std::int64_t end = first + kGroup < n_columns ? first + kGroup : n_columns;
            bool any = end < first + kGroup;
            if (!any)
                for (int j = 0; j < kGroup; ++j) any |= s[first + j] != 0;
            for (std::int64_t j = first; any && j < end; ++j)
                if (s[j] != 0) {
                    row.push_back(i);
                    column.push_back(std::int32_t(j));
                    values.push_back(s[j]);
                }
        }
    }
    void sort_by_column() {
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
