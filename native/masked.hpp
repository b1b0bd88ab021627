// Products of dense rows with sparse columns, on a support only.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/pacer.hpp"

namespace quickmeans {

// The non-zeros of an m x r matrix, column by column.
struct SparseColumns {
    std::vector<std::int64_t> begin;
    std::vector<std::int32_t> rows;
    std::vector<double> values;

    SparseColumns(const double* matrix, std::int64_t m, std::int64_t r, const Poll& poll) : begin(std::size_t(r) + 1) {
        Pacer pacer{poll};
        for (std::int64_t i = 0; i < m; ++i, pacer.did(r))
            for (std::int64_t j = 0; j < r; ++j) begin[std::size_t(j) + 1] += matrix[i * r + j] != 0;
        for (std::size_t j = 1; j < begin.size(); ++j) begin[j] += begin[j - 1];
        rows.resize(std::size_t(begin.back()));
        values.resize(rows.size());
        std::vector<std::int64_t> end(begin.begin(), begin.end() - 1);
        for (std::int64_t i = 0; i < m; ++i, pacer.did(r))
            for (std::int64_t j = 0; j < r; ++j)
                if (const double value = matrix[i * r + j]; value != 0) {
                    const std::size_t e = std::size_t(end[std::size_t(j)]++);
                    rows[e] = std::int32_t(i);
                    values[e] = value;
                }
    }

    std::int64_t length(std::int64_t j) const { return begin[std::size_t(j) + 1] - begin[std::size_t(j)]; }

    // <column j, x>, in four sums, so that no addition waits for the last.
    double dot(std::int64_t j, const double* x) const {
        std::int64_t e = begin[std::size_t(j)];
        const std::int64_t end = begin[std::size_t(j) + 1];
        const std::int32_t* const row = rows.data();
        const double* const value = values.data();
        double a = 0, b = 0, c = 0, d = 0;
        for (; e + 4 <= end; e += 4) {
            a += value[e] * x[row[e]];
            b += value[e + 1] * x[row[e + 1]];
            c += value[e + 2] * x[row[e + 2]];
            d += value[e + 3] * x[row[e + 3]];
        }
        for (; e < end; ++e) a += value[e] * x[row[e]];
        return (a + b) + (c + d);
    }
};

}  // namespace quickmeans
