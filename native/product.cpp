#include "product.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <numeric>

#include "dispatch.hpp"
#include "kernels/pacer.hpp"
#include "parallel.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace quickmeans {

namespace {

// A slice with more than this share of non-zeros is packed as a dense one. benchmarks/cost_model.py measures that a
// multiply-add of a sparse slice takes 2.2 times as long as one of a dense slice, so the two are equal at a share of
// 0.46; the value in use is older. (The share at which a factor is stored as a dense array is one of memory:
// DENSE_SHARE in transform/factors.py.)
constexpr double kDenseSliceShare = 0.4;
// Multiply-adds that are worth a thread. Starting one takes as long as 1.2e6 of them, 28 microseconds
// (benchmarks/cost_model.py), so it costs at most an eighth of what it does.
constexpr double kWorkPerThread = 1e7;
// Up to this number of rows are computed one by one: a tile has 16 lanes or more, and takes as long for three rows as
// for sixteen.
constexpr std::int64_t kSingleRows = 2;

std::int64_t second_level_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (size > 0) return size;
#endif
    return std::int64_t(1) << 20;
}

// One block of aligned memory cut into the parts of a Workspace.
template <class T>
class Scratch {
  public:
    Scratch(std::int64_t front, std::int64_t back, std::int64_t outputs, std::int64_t line, std::int64_t n_listed,
            int lanes) {
        const std::int64_t window = lanes == 1 ? outputs : kWindowRows * lanes;
        const std::int64_t listed = n_listed > 1 ? 2 * n_listed * lanes : 0;
        T** const parts[kParts] = {&view_.front, &view_.back,    &view_.window,
                                   &view_.line,  &view_.staging, &view_.heap_scores};
        const std::int64_t sizes[kParts] = {
            front * lanes, back * lanes, window, line, std::int64_t(lanes) * kStagingColumns, listed};
        std::int64_t bytes = 0;
        for (std::int64_t size : sizes) bytes += padded(size * std::int64_t(sizeof(T)));
        const std::int64_t labels = padded(listed * std::int64_t(sizeof(std::int64_t)));
        memory_.reset(static_cast<char*>(::operator new(std::size_t(bytes + labels), kAlignment)));
        char* at = memory_.get();
        for (int i = 0; i < kParts; ++i) {
            *parts[i] = reinterpret_cast<T*>(at);
            at += padded(sizes[i] * std::int64_t(sizeof(T)));
        }
        view_.heap_labels = reinterpret_cast<std::int64_t*>(at);
#if defined(__SANITIZE_ADDRESS__)
        for (int i = 0; i < kParts; ++i)  // the padding between the parts
            ASAN_POISON_MEMORY_REGION(*parts[i] + sizes[i], padded(sizes[i] * sizeof(T)) - sizes[i] * sizeof(T));
        bytes_ = std::size_t(bytes + labels);
#endif
    }
    Scratch(Scratch&&) = default;
    ~Scratch() {
#if defined(__SANITIZE_ADDRESS__)
        if (memory_) ASAN_UNPOISON_MEMORY_REGION(memory_.get(), bytes_);
#endif
    }
    Workspace<T> with(const Poll& poll) const {
        Workspace<T> workspace = view_;
        workspace.poll = poll;
        return workspace;
    }

  private:
    Workspace<T> view_{};
    static constexpr int kParts = 6;
    static constexpr std::align_val_t kAlignment{64};
    struct Free {
        void operator()(char* p) const { ::operator delete(p, kAlignment); }
    };
    static std::int64_t padded(std::int64_t bytes) { return (bytes + 127) / 64 * 64; }
    std::unique_ptr<char, Free> memory_;
#if defined(__SANITIZE_ADDRESS__)
    std::size_t bytes_;
#endif
};

}  // namespace

template <class T>
PackedFactor<T>::PackedFactor(const FactorSource<T>& source, const Poll& poll)
    : n_rows_(source.n_rows), n_columns_(source.n_columns) {
    std::vector<std::int32_t> order;
    Pacer pacer{poll};
    for (std::int64_t base = 0; base < n_rows_; base += kWindowRows) {
        windows_.push_back(std::int64_t(slices_.size()));
        order.resize(std::size_t(std::min<std::int64_t>(kWindowRows, n_rows_ - base)));
        std::iota(order.begin(), order.end(), std::int32_t(base));
        std::stable_sort(order.begin(), order.end(),
                         [&](auto a, auto b) { return source.length(a) < source.length(b); });
        for (std::size_t i = 0; i < order.size(); i += kSliceRows) {
            add_slice(source, order.data() + i, int(std::min<std::size_t>(kSliceRows, order.size() - i)));
            pacer.did(kSliceRows * (slices_.back().dense ? n_columns_ : std::int64_t(slices_.back().longest)));
        }
    }
    windows_.push_back(std::int64_t(slices_.size()));
}

template <class T>
void PackedFactor<T>::add_slice(const FactorSource<T>& source, const std::int32_t* rows, int n) {
    Slice slice{};
    slice.begin = std::int64_t(values_.size());
    slice.lane_begin = std::int64_t(lane_values_.size());
    slice.n_rows = n;
    slice.contiguous = n == kSliceRows;
    for (int i = 0; i < kSliceRows; ++i) {
        slice.row[i] = std::uint32_t(i < n ? rows[i] : n_rows_ + i);
        slice.contiguous &= slice.row[i] == slice.row[0] + std::uint32_t(i);
    }
    std::int64_t entries = 0;
    for (int i = 0; i < n; ++i) {
        slice.length[i] = std::int32_t(source.length(rows[i]));
        slice.longest = std::max(slice.longest, slice.length[i]);
        entries += slice.length[i];
    }
    slice.dense = double(entries) > kDenseSliceShare * double(n * n_columns_);
    const std::int64_t lane_size = kSliceRows * (slice.dense ? n_columns_ : slice.longest);
    lane_values_.resize(lane_values_.size() + std::size_t(lane_size));
    if (!slice.dense) lane_columns_.resize(lane_values_.size(), std::uint32_t(n_columns_));
    for (int i = 0; i < n; ++i) {
        double row_sum = 0;
        for (std::int64_t l = 0; l < slice.length[i]; ++l) {
            const std::uint32_t column = source.column(rows[i], l);
            const T value = source.value(rows[i], l);
            row_sum += std::abs(double(value));
            const std::size_t lane = std::size_t(slice.lane_begin + (slice.dense ? column : l) * kSliceRows + i);
            lane_values_[lane] = value;
            if (slice.dense) continue;
            lane_columns_[lane] = column;
            columns_.push_back(column);
            values_.push_back(value);
        }
        largest_row_sum_ = std::max(largest_row_sum_, row_sum);
    }
    slices_.push_back(slice);
    macs_ += slice.dense ? n * n_columns_ : entries;
}

template <class T>
FactorView<T> PackedFactor<T>::view() const {
    return {n_rows_,         n_columns_,     slices_.data(),       std::int64_t(slices_.size()), windows_.data(),
            columns_.data(), values_.data(), lane_columns_.data(), lane_values_.data()};
}

namespace {

// The factors packed, in the order of application.
template <class T>
std::vector<std::shared_ptr<const PackedFactor<T>>> packed(const std::vector<FactorSource<T>>& sources,
                                                           const Poll& poll) {
    std::vector<std::shared_ptr<const PackedFactor<T>>> factors;
    for (std::size_t q = sources.size(); q-- > 0;)
        factors.push_back(std::make_shared<const PackedFactor<T>>(sources[q], poll));
    return factors;
}

}  // namespace

template <class T>
Product<T>::Product(const std::vector<FactorSource<T>>& factors, const std::string& isa, const Poll& poll)
    : Product(packed(factors, poll), &find_instruction_set(isa)) {}

template <class T>
Product<T>::Product(Factors factors, const InstructionSet* set) : factors_(std::move(factors)), set_(set) {
    for (std::size_t q = 0; q < factors_.size(); ++q) {
        std::int64_t& width = q % 2 ? back_ : front_;
        width = std::max(width, factors_[q]->n_columns());
        macs_ += factors_[q]->macs();
        growth_ *= std::max(factors_[q]->largest_row_sum(), 1.0);
        views_.push_back(factors_[q]->view());
    }
}

// The widest tile whose two buffers, and whose lists, stay in half of the second-level cache; but no wider than the
// rows can fill.
template <class T>
int Product<T>::lanes_for(std::int64_t n, std::int64_t n_listed, int n_threads) const {
    const std::int64_t budget = second_level_cache() / 2;
    std::int64_t bytes = set_->max_tile_bytes;
    while (bytes > 64 && ((front_ + back_) * bytes > budget || 6 * n_listed * bytes > budget)) bytes /= 2;
    while (bytes > 64 && n <= bytes / 2 / std::int64_t(sizeof(T)) * n_threads) bytes /= 2;
    return int(bytes / std::int64_t(sizeof(T)));
}

// Fill in the factors, and a limit of |x_j| up to which no score overflows.
template <class T>
void Product<T>::complete(ProductJob<T>& job, double growth) const {
    job.factors = views_.data();
    job.n_factors = std::int64_t(views_.size());
    const double most = double(std::numeric_limits<T>::max());
    const double limit = (most / 4 - job.largest_offset) / std::max(growth_, growth);
    job.limit = limit > 0 ? T(std::min(most, limit)) : T(0);  // 0 also if it is NaN
}

// Lower the limit so that squared distances of rows from a mean of the same size do not overflow.
template <class T>
void Product<T>::limit_squares(ProductJob<T>& job, std::int64_t n_columns) {
    const double most = double(std::numeric_limits<T>::max());
    job.limit = std::min(job.limit, T(std::sqrt(most / 16 / double(n_columns))));
}

template <class T>
std::int64_t Product<T>::run(ProductJob<T> job, double growth, int n_threads, const Poll& poll) const {
    complete(job, growth);
    const Size size{job.rows.n_rows, job.centers ? job.rows.n_columns : 0, job.n_listed};
    return drive(job, kernels_of<T>(*set_).product, size, n_threads, poll);
}

template <class T>
std::int64_t Product<T>::run(SettleJob<T> job, double growth, int n_threads, const Poll& poll) const {
    complete(job.screen, growth);
    limit_squares(job.screen, job.rows.n_columns);
    const Size size{job.screen.rows.n_rows, job.rows.n_columns, std::max<std::int64_t>(kListed, job.shortlist)};
    return drive(job, kernels_of<T>(*set_).settle, size, n_threads, poll);
}

template <class T>
std::int64_t Product<T>::run(GaussianJob<T> job, int n_threads, const Poll& poll) const {
    complete(job.product, 1);
    limit_squares(job.product, job.product.rows.n_columns);
    return drive(job, kernels_of<T>(*set_).gaussian, Size{job.product.rows.n_rows, 0, 1}, n_threads, poll);
}

template <class T>
template <class Job>
std::int64_t Product<T>::drive(const Job& job, const RowKernel<T, Job>& kernel, const Size& size, int n_threads,
                               const Poll& poll) const {
    const std::int64_t n = size.n_rows;
    if (n <= kSingleRows) {
        const Scratch<T> scratch(front_ + kSliceRows, back_ + kSliceRows, n_rows() + kSliceRows, size.line,
                                 size.n_listed, 1);
        for (std::int64_t i = 0; i < n; ++i)
            if (!kernel.row(job, i, scratch.with(poll))) return i;
        return -1;
    }
    const double work = double(n) * double(macs_ + n_columns());
    n_threads = int(std::clamp(double(n_threads), 1.0, 1 + work / kWorkPerThread));
    const int lanes = lanes_for(n, size.n_listed, n_threads), narrowest = 64 / int(sizeof(T));
    const std::int64_t n_tiles = (n + lanes - 1) / lanes;
    n_threads = int(std::min<std::int64_t>(n_threads, n_tiles));

    std::vector<Scratch<T>> scratch;
    scratch.reserve(std::size_t(n_threads));
    for (int i = 0; i < n_threads; ++i) scratch.emplace_back(front_, back_, n_rows(), size.line, size.n_listed, lanes);

    std::atomic<std::int64_t> bad{n};
    const auto tile = [&](std::int64_t t, int thread, const Poll& own_poll) {
        const Range rows{t * lanes, std::min<std::int64_t>(lanes, n - t * lanes)};
        int used = lanes;
        while (used / 2 >= rows.count && used > narrowest) used /= 2;
        if (kernel.tile(job, rows, used, scratch[std::size_t(thread)].with(own_poll))) return true;
        // Tiles are handed out in order, so the first bad one is found whatever the number of threads.
        std::int64_t seen = bad.load();
        while (rows.first < seen && !bad.compare_exchange_weak(seen, rows.first)) {
        }
        return false;
    };
    for_each_chunk(n_tiles, n_threads, tile, poll);
    return bad.load() < n ? bad.load() : -1;
}

template class PackedFactor<float>;
template class PackedFactor<double>;
template class Product<float>;
template class Product<double>;

}  // namespace quickmeans
