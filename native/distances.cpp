#include "distances.hpp"

#include <algorithm>
#include <atomic>

#include "dispatch.hpp"
#include "kernels/pacer.hpp"
#include "parallel.hpp"

namespace quickmeans {
namespace {

// Up to this number of columns all distances are computed from differences: with so few, the square root and the store
// of a distance take longer than its sum.
constexpr std::int64_t kFewColumns = 12;
// The rows of a block take up to this many bytes, a quarter of a second-level cache of 512 KB. More made no difference
// for few columns, and took up to a tenth longer for 784 and 2000.
constexpr std::int64_t kBlockBytes = std::int64_t(1) << 17;
constexpr int kMostPanel = 32;  // centers in two vectors of AVX-512
constexpr std::int64_t kRowGroup = 6, kMostGroups = 16;
// The square root and the store of a distance take as long as about so many multiply-adds.
constexpr std::int64_t kFinish = 16;
// Multiply-adds of a chunk: enough to hide the poll after it, few enough to divide small work.
constexpr std::int64_t kWorkPerChunk = 1 << 18;
// Multiply-adds that are worth a thread; see product.cpp.
constexpr double kWorkPerThread = 1e7;
// Entries of rows that are worth a thread where each is used once, which is bound by memory.
constexpr double kEntriesPerThread = 1e6;

int threads_for(double work, double per_thread, int n_threads) {
    return int(std::clamp(double(n_threads), 1.0, 1 + work / per_thread));
}

std::int64_t divided(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

template <class T>
Distances<T>::Distances(const T* centers, std::int64_t n_centers, std::int64_t n_columns, const double* mean,
                        bool spherical, const std::string& isa, const Poll& poll)
    : n_centers_(n_centers),
      n_columns_(n_columns),
      spherical_(spherical),
      by_differences_(n_columns <= kFewColumns),
      set_(&find_instruction_set(isa)),
      centers_(centers, centers + n_centers * n_columns),
      mean_(std::size_t(n_columns)) {
    if (!spherical_ && !by_differences_) mean_.assign(mean, mean + n_columns);
    const std::int64_t panel = 2 * set_->vector_bytes / std::int64_t(sizeof(T));
    const std::int64_t padded = divided(n_centers, panel) * panel;
    panels_.resize(std::size_t(padded * n_columns));
    squares_.resize(std::size_t(padded));
    Pacer pacer{poll};
    for (std::int64_t first = 0; first < n_centers; first += panel) {
        pack(first, std::min(panel, n_centers - first), panel);
        pacer.did(panel * n_columns);
    }
}

// Write the panel of so many centers from `first` on.
template <class T>
void Distances<T>::pack(std::int64_t first, std::int64_t count, std::int64_t panel) {
    double squares[kMostPanel] = {};
    T* to = panels_.data() + first * n_columns_;
    for (std::int64_t d = 0; d < n_columns_; ++d, to += panel) {
        const double origin = double(mean_[std::size_t(d)]);
        const T* from = centers_.data() + first * n_columns_ + d;
        for (std::int64_t i = 0; i < count; ++i, from += n_columns_) {
            to[i] = T(double(*from) - origin);
            squares[i] += double(to[i]) * double(to[i]);
        }
    }
    for (std::int64_t i = 0; i < count; ++i) squares_[std::size_t(first + i)] = T(squares[i]);
}

template <class T>
DistanceJob<T> Distances<T>::job(const RowsView& rows, void* out, bool narrow) const {
    const std::int64_t step = divided(n_columns_, 16) * 16 + 16;  // rows of 4096 bytes would share lines of the cache
    const std::int64_t groups = kBlockBytes / (kRowGroup * step * std::int64_t(sizeof(T)));
    return {.rows = rows,
            .mean = mean_.data(),
            .centers = centers_.data(),
            .panels = panels_.data(),
            .squares = squares_.data(),
            .n_centers = n_centers_,
            .spherical = spherical_,
            .by_differences = by_differences_,
            .block_rows = kRowGroup * std::clamp<std::int64_t>(groups, 1, kMostGroups),
            .row_step = step,
            .out = out,
            .narrow = narrow};
}

template <class T>
std::int64_t Distances<T>::run(const RowsView& rows, void* out, bool narrow, int n_threads, const Poll& poll) const {
    const DistanceJob<T> whole = job(rows, out, narrow);
    const std::int64_t n = rows.n_rows, work = n_centers_ * (n_columns_ + kFinish);
    n_threads = threads_for(double(n) * double(work), kWorkPerThread, n_threads);
    const std::int64_t blocks = std::max<std::int64_t>(1, kWorkPerChunk / (work * whole.block_rows));
    const std::int64_t size = blocks * whole.block_rows, n_chunks = divided(n, size);
    const std::int64_t scratch_size =
        whole.block_rows * (whole.row_step + 1 + 2 * set_->vector_bytes / std::int64_t(sizeof(T))) + n_columns_;
    n_threads = int(std::min<std::int64_t>(n_threads, std::max<std::int64_t>(n_chunks, 1)));
    const AlignedVector<T> empty(static_cast<std::size_t>(scratch_size));
    std::vector<AlignedVector<T>> scratch(static_cast<std::size_t>(n_threads), empty);
    std::atomic<std::int64_t> bad{n};
    const auto chunk = [&](std::int64_t i, int thread, const Poll& own_poll) {
        const Range range{i * size, std::min(size, n - i * size)};
        T* own = scratch[std::size_t(thread)].data();
        if (kernels_of<T>(*set_).distances(whole, range, own, own_poll)) return true;
        // The first of the bad chunks that were looked at to their end.
        std::int64_t seen = bad.load();
        while (range.first < seen && !bad.compare_exchange_weak(seen, range.first)) {
        }
        return false;
    };
    for_each_chunk(n_chunks, n_threads, chunk, poll);
    return bad.load() < n ? bad.load() : -1;
}

void squared_differences(const DifferenceJob& job, const InstructionSet& set, int n_threads, const Poll& poll) {
    const std::int64_t n = job.rows.n_rows, D = job.rows.n_columns;
    n_threads = threads_for(double(n) * double(D), kEntriesPerThread, n_threads);
    const std::int64_t size = std::max<std::int64_t>(1, kWorkPerChunk / D), n_chunks = divided(n, size);
    n_threads = int(std::min<std::int64_t>(n_threads, std::max<std::int64_t>(n_chunks, 1)));
    const std::vector<double> line(static_cast<std::size_t>(D));
    std::vector<std::vector<double>> lines(static_cast<std::size_t>(n_threads), line);
    const auto chunk = [&](std::int64_t i, int thread, const Poll& own_poll) {
        const Range range{i * size, std::min(size, n - i * size)};
        set.routines.squared_differences(job, range, lines[std::size_t(thread)].data(), own_poll);
        return true;
    };
    for_each_chunk(n_chunks, n_threads, chunk, poll);
}

template class Distances<float>;
template class Distances<double>;

}  // namespace quickmeans
