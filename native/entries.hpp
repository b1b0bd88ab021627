// The non-zeros of a matrix, in row order and in column order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/types.hpp"

namespace quickmeans {

class Entries {
  public:
    std::int64_t n_rows, n_columns;
    std::vector<std::int64_t> row_start, column_start;
    std::vector<std::int64_t> by_column;      // the entries in column order
    std::vector<std::int32_t> row, column;    // of each entry, in row order
    std::vector<std::int32_t> row_by_column;  // row[by_column[e]]
    std::vector<double> values, value_by_column;

    // The non-zeros of a dense matrix with rows that are `stride` apart, or those that are marked as kept.
    Entries(const double* S, std::int64_t n, std::int64_t m, std::int64_t stride, const unsigned char* kept = nullptr)
        : n_rows(n), n_columns(m), row_start{0} {
        for (std::int64_t i = 0; i < n; ++i) {
            kept ? add_kept(S + i * stride, kept + i * m, std::int32_t(i)) : add_row(S + i * stride, std::int32_t(i));
            row_start.push_back(std::int64_t(size()));
        }
        sort_by_column();
    }
    std::size_t size() const { return row.size(); }
    bool has_support_of(const Entries& other) const { return row_start == other.row_start && column == other.column; }
    SupportView support() const {
        return {n_rows,        n_columns,           row_start.data(), row.data(),
                column.data(), column_start.data(), by_column.data(), row_by_column.data()};
    }

    void set_values(std::vector<double> updated) {
        values = std::move(updated);
        for (std::size_t a = 0; a < size(); ++a) value_by_column[a] = values[std::size_t(by_column[a])];
    }
    void scale(double c) {
        for (double& x : values) x *= c;
        for (double& x : value_by_column) x *= c;
    }

  private:
    void add(std::int32_t i, std::int64_t j, double value) {
        row.push_back(i);
        column.push_back(std::int32_t(j));
        values.push_back(value);
    }
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
                if (s[j] != 0) add(i, j, s[j]);
        }
    }
    void add_kept(const double* s, const unsigned char* kept, std::int32_t i) {
        std::int64_t j = 0;
        for (std::uint64_t eight; j + 8 <= n_columns; j += 8) {
            __builtin_memcpy(&eight, kept + j, 8);
            for (; eight; eight &= eight - 1) {  // every mark is one bit
                const std::int64_t at = j + __builtin_ctzll(eight) / 8;
                if (s[at] != 0) add(i, at, s[at]);
            }
        }
        for (; j < n_columns; ++j)
            if (kept[j] && s[j] != 0) add(i, j, s[j]);
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
