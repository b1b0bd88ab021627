#include "sums.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace quickmeans {
namespace {

// Columns of a sum that one thread adds at a time: 8 KB of sums stay in the first-level cache.
constexpr std::int64_t kSumColumns = 1024;
// Entries that are worth a thread. Starting one takes as long as adding 5e4 of them (benchmarks/cost_model.py); the
// value in use is older, and makes threads rarer than need be.
constexpr double kEntriesPerThread = 1e6;

// Entries that a thread copies at a time: a megabyte, some pages.
constexpr std::int64_t kChunkEntries = std::int64_t(1) << 18;

int threads_for(int n_threads, std::int64_t n_rows, std::int64_t n_columns) {
    return double(n_rows) * double(n_columns) < kEntriesPerThread ? 1 : n_threads;
}

}  // namespace

void add_members(const SumJob& job, std::int64_t n_clusters, const InstructionSet& set, int n_threads,
                 const Poll& poll) {
    const std::int64_t n_columns = job.rows.n_columns, n_blocks = (n_columns + kSumColumns - 1) / kSumColumns;
    const auto chunk = [&](std::int64_t i, int, const Poll& own_poll) {
        const std::int64_t first = i % n_blocks * kSumColumns;
        set.routines.add_members(job, i / n_blocks, {first, std::min(kSumColumns, n_columns - first)}, own_poll);
        return true;
    };
    for_each_chunk(n_clusters * n_blocks, threads_for(n_threads, job.starts[n_clusters], n_columns), chunk, poll);
}

void add_moments(const MomentJob& job, std::int64_t n_blocks, const InstructionSet& set, int n_threads,
                 const Poll& poll) {
    const std::int64_t n = job.rows.n_rows;
    const auto chunk = [&](std::int64_t block, int, const Poll& own_poll) {
        const std::int64_t first = n / n_blocks * block + std::min(block, n % n_blocks);
        set.routines.moments(job, block, {first, n / n_blocks + (block < n % n_blocks)}, own_poll);
        return true;
    };
    for_each_chunk(n_blocks, threads_for(n_threads, n, job.rows.n_columns), chunk, poll);
}

void center_rows(const CenterJob& job, const InstructionSet& set, int n_threads, const Poll& poll) {
    const std::int64_t n = job.rows.n_rows, D = std::max<std::int64_t>(job.rows.n_columns, 1);
    const std::int64_t size = std::max<std::int64_t>(kChunkEntries / D, 1);
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        set.routines.center_rows(job, {c * size, std::min(size, n - c * size)}, own_poll);
        return true;
    };
    for_each_chunk((n + size - 1) / size, threads_for(n_threads, n, D), chunk, poll);
}

}  // namespace quickmeans
