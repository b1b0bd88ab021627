#include "select.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace quickmeans {
namespace {

constexpr std::int64_t kFew = 16;     // so many are kept in order while the entries go by; more are found by partition
constexpr std::int64_t kColumns = 8;  // handled side by side: one line of the cache

// The k largest sizes seen so far and where they are, largest first.
struct Best {
    double size[kFew];
    std::int64_t place[kFew];

    void clear(std::int64_t k) { std::fill(size, size + k, -1.0); }
    void offer(double x, std::int64_t where, std::int64_t k) {
        std::int64_t i = k - 1;
        for (; i > 0 && size[i - 1] < x; --i) {
            size[i] = size[i - 1];
            place[i] = place[i - 1];
        }
        size[i] = x;
        place[i] = where;
    }
};

double size_of(double x) { return x == x ? std::fabs(x) : 0.0; }

// Whether one of eight neighbours is larger than its bar.
bool any_larger(const double* x, const double* bars) {
    bool any = false;
    for (int j = 0; j < kColumns; ++j) any |= std::fabs(x[j]) > bars[j];
    return any;
}

void mark_few_per_row(const double* M, std::int64_t n, std::int64_t m, std::int64_t k, unsigned char* kept) {
    Best best;
    double bars[kColumns];
    for (std::int64_t i = 0; i < n; ++i) {
        best.clear(k);
        std::fill(bars, bars + kColumns, -1.0);
        for (std::int64_t first = 0; first < m; first += kColumns) {
            const std::int64_t end = std::min(first + kColumns, m);
            if (first >= k && end == first + kColumns && !any_larger(M + i * m + first, bars)) continue;
            for (std::int64_t j = first; j < end; ++j) {
                const double x = size_of(M[i * m + j]);
                if (x > best.size[k - 1]) best.offer(x, j, k);
            }
            std::fill(bars, bars + kColumns, best.size[k - 1]);
        }
        for (std::int64_t a = 0; a < k; ++a) kept[i * m + best.place[a]] = 1;
    }
}

void mark_few_per_column(const double* M, std::int64_t n, std::int64_t m, std::int64_t k, unsigned char* kept) {
    Best best[kColumns];
    double bars[kColumns];
    for (std::int64_t j0 = 0; j0 < m; j0 += kColumns) {
        const std::int64_t width = std::min(kColumns, m - j0);
        for (Best& b : best) b.clear(k);
        for (std::int64_t i = 0; i < n; ++i) {
            const double* const x = M + i * m + j0;
            if (i >= k && width == kColumns && !any_larger(x, bars)) continue;
            for (std::int64_t j = 0; j < width; ++j) {
                if (size_of(x[j]) > best[j].size[k - 1]) best[j].offer(size_of(x[j]), i, k);
                bars[j] = best[j].size[k - 1];
            }
        }
        for (std::int64_t j = 0; j < width; ++j)
            for (std::int64_t a = 0; a < k; ++a) kept[best[j].place[a] * m + j0 + j] = 1;
    }
}

// Mark the k largest of the n entries x[0], x[step], ...; `scratch` holds n.
void mark_many(const double* x, std::int64_t n, std::int64_t step, std::int64_t k, double* scratch,
               unsigned char* kept) {
    for (std::int64_t i = 0; i < n; ++i) scratch[i] = size_of(x[i * step]);
    double bar = -1;
    if (k < n) {
        std::nth_element(scratch, scratch + k - 1, scratch + n, std::greater<double>());
        bar = scratch[k - 1];
    }
    std::int64_t room = std::min(k, n);
    for (std::int64_t i = 0; i < n; ++i)
        if (size_of(x[i * step]) > bar) {
            kept[i * step] = 1;
            --room;
        }
    for (std::int64_t i = 0; i < n && room > 0; ++i)
        if (size_of(x[i * step]) == bar) {
            kept[i * step] = 1;
            --room;
        }
}

}  // namespace

void mark_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t per_row,
                  std::int64_t per_column, unsigned char* kept) {
    std::fill(kept, kept + n_rows * n_columns, static_cast<unsigned char>(0));
    std::vector<double> scratch(std::size_t(std::max(n_columns, n_rows)));
    if (per_row > 0 && per_row <= std::min(kFew, n_columns))
        mark_few_per_row(M, n_rows, n_columns, per_row, kept);
    else if (per_row > 0)
        for (std::int64_t i = 0; i < n_rows; ++i)
            mark_many(M + i * n_columns, n_columns, 1, per_row, scratch.data(), kept + i * n_columns);
    if (per_column > 0 && per_column <= std::min(kFew, n_rows))
        mark_few_per_column(M, n_rows, n_columns, per_column, kept);
    else if (per_column > 0)
        for (std::int64_t j = 0; j < n_columns; ++j)
            mark_many(M + j, n_rows, n_columns, per_column, scratch.data(), kept + j);
}

namespace {

// Keys in ascending order of their upper half, by counting three times; equal ones stay in their order.
void sort_by_upper_half(std::vector<std::uint64_t>& keys) {
    constexpr int kBits = 11;
    std::vector<std::uint64_t> sorted(keys.size());
    for (int shift = 32; shift < 64; shift += kBits) {
        std::size_t start[(1 << kBits) + 1] = {};
        const auto digit = [shift](std::uint64_t key) { return std::size_t(key >> shift) & ((1 << kBits) - 1); };
        for (const std::uint64_t key : keys) ++start[digit(key) + 1];
        for (int i = 0; i < 1 << kBits; ++i) start[i + 1] += start[i];
        for (const std::uint64_t key : keys) sorted[start[digit(key)]++] = key;
        keys.swap(sorted);
    }
}

// The bits of a positive single-precision number, in reverse: larger numbers have smaller keys.
std::uint64_t key_of(float size) {
    std::uint32_t bits;
    std::memcpy(&bits, &size, sizeof bits);
    return std::uint64_t(~bits) << 32;
}

}  // namespace

void match_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t per_row,
                   std::int64_t per_column, unsigned char* kept) {
    std::fill(kept, kept + n_rows * n_columns, static_cast<unsigned char>(0));
    std::vector<std::uint64_t> keys;
    double largest = 0;
    for (std::int64_t e = 0; e < n_rows * n_columns; ++e) largest = std::max(largest, size_of(M[e]));
    for (std::int64_t e = 0; e < n_rows * n_columns; ++e)
        if (size_of(M[e]) > 0) keys.push_back(key_of(float(size_of(M[e]) / largest)) | std::uint64_t(e));
    sort_by_upper_half(keys);
    std::vector<std::int64_t> row_room(std::size_t(n_rows), per_row), column_room(std::size_t(n_columns), per_column);
    std::int64_t room = std::min(n_rows * std::min(per_row, n_columns), n_columns * std::min(per_column, n_rows));
    for (std::size_t a = 0; a < keys.size() && room > 0; ++a) {
        const std::int64_t e = std::int64_t(keys[a] & 0xffffffffu);
        std::int64_t &row = row_room[std::size_t(e / n_columns)], &column = column_room[std::size_t(e % n_columns)];
        if (row == 0 || column == 0) continue;
        --row, --column, --room;
        kept[e] = 1;
    }
}

void smallest(const float* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t k, float* values,
              std::int64_t* columns) {
    using Entry = std::pair<float, std::int64_t>;
    std::vector<Entry> heap(std::size_t(k), Entry{});  // the largest of those kept on top
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const float* row = M + i * n_columns;
        for (std::int64_t j = 0; j < k; ++j) heap[std::size_t(j)] = {row[j], j};
        std::make_heap(heap.begin(), heap.end());
        for (std::int64_t j = k; j < n_columns; ++j) {
            if (!(row[j] < heap.front().first)) continue;
            std::pop_heap(heap.begin(), heap.end());
            heap.back() = {row[j], j};
            std::push_heap(heap.begin(), heap.end());
        }
        std::sort_heap(heap.begin(), heap.end());
        for (std::int64_t j = 0; j < k; ++j) {
            values[i * k + j] = heap[std::size_t(j)].first;
            columns[i * k + j] = heap[std::size_t(j)].second;
        }
    }
}

}  // namespace quickmeans
