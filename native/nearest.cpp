#include "nearest.hpp"

#include <algorithm>
#include <atomic>

#include "parallel.hpp"
#include "work.hpp"

namespace quickmeans {

template <class T>
std::int64_t find_nearest(const NearestJob<T>& job, const InstructionSet& set, int n_threads, const Poll& poll) {
    const NearestKernel<T>& kernel = kernels_of<T>(set).nearest;
    const std::int64_t n = job.rows.n_rows, D = job.rows.n_columns;
    constexpr std::int64_t kTilesPerChunk = 16;
    const std::int64_t chunk_rows = kTilesPerChunk * kernel.lanes, n_chunks = (n + chunk_rows - 1) / chunk_rows;
    n_threads = threads_for(work_of_rows(n, D, job.n_centers), n_threads);
    const std::size_t size = std::size_t((D + kStagingColumns) * kernel.lanes);
    std::vector<std::vector<T>> memory(static_cast<std::size_t>(n_threads));
    std::atomic<std::int64_t> bad{n};
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        std::vector<T>& own = memory[std::size_t(thread)];
        if (own.empty()) own.resize(size);
        const Range rows{c * chunk_rows, std::min(chunk_rows, n - c * chunk_rows)};
        if (kernel.run(job, rows, own.data(), own_poll)) return true;
        // The first of the bad chunks that were looked at to their end.
        std::int64_t seen = bad.load();
        while (rows.first < seen && !bad.compare_exchange_weak(seen, rows.first)) {
        }
        return false;
    };
    for_each_chunk(n_chunks, n_threads, chunk, poll);
    return bad.load() < n ? bad.load() : -1;
}

template std::int64_t find_nearest(const NearestJob<float>&, const InstructionSet&, int, const Poll&);
template std::int64_t find_nearest(const NearestJob<double>&, const InstructionSet&, int, const Poll&);

}  // namespace quickmeans
