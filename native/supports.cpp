#include "supports.hpp"

#include <algorithm>
#include <vector>

#include "kernels/pacer.hpp"
#include "parallel.hpp"

namespace quickmeans {
namespace {

constexpr std::int64_t kRows = 8;  // that a thread takes at a time, so that the threads end at about the same time

std::int64_t n_chunks(std::int64_t n_rows) { return (n_rows + kRows - 1) / kRows; }

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

}  // namespace

void fit_supports(const SupportJob& job, const InstructionSet& set, int n_threads, const Poll& poll) {
    const std::int64_t n = n_chunks(job.n_rows);
    const std::size_t count = std::size_t(std::clamp<std::int64_t>(n_threads, 1, std::max<std::int64_t>(n, 1)));
    const std::size_t longest = std::size_t(job.n_atoms) + kSupportPadding;
    std::vector<std::vector<double>> scratch(count, std::vector<double>(longest * (longest + 2 * kPivots)));
    std::vector<std::vector<std::int32_t>> order(count, std::vector<std::int32_t>(std::size_t(job.n_atoms)));
    const auto chunk = [&](std::int64_t i, int thread, const Poll& own_poll) {
        const Range rows{i * kRows, std::min(kRows, job.n_rows - i * kRows)};
        const std::size_t own = std::size_t(thread);
        set.routines.fit_rows(job, rows, scratch[own].data(), order[own].data(), own_poll);
        return true;
    };
    for_each_chunk(n, int(count), chunk, poll);
}

void masked_product(const MaskedJob& job, int n_threads, const Poll& poll) {
    const std::int64_t r = job.n_atoms;
    const SparseColumns columns(job.atoms, job.n_columns, r, poll);
    const auto chunk = [&](std::int64_t i, int, const Poll& own_poll) {
        Pacer pacer{own_poll};
        for (std::int64_t row = i * kRows; row < std::min(job.n_rows, (i + 1) * kRows); ++row)
            for (std::int64_t j = 0; j < r; ++j) {
                const bool wanted = job.support[row * r + j];
                job.out[row * r + j] = wanted ? columns.dot(j, job.rows + row * job.n_columns) : 0;
                pacer.did(1 + wanted * columns.length(j));
            }
        return true;
    };
    for_each_chunk(n_chunks(job.n_rows), n_threads, chunk, poll);
}

}  // namespace quickmeans
