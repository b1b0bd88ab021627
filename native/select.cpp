#include "select.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/pacer.hpp"

namespace quickmeans {
namespace {

// Up to this number of entries are kept sorted while the others pass by; more are found by partition, whose cost does
// not depend on their number.
constexpr std::int64_t kMostSorted = 16;
constexpr std::int64_t kColumns = 8;  // columns that are handled together: one line of the cache

// The k largest sizes so far and their positions, largest first.
struct Largest {
    double size[kMostSorted];
    std::int64_t position[kMostSorted];

    void clear(std::int64_t k) { std::fill(size, size + k, -1.0); }
    void offer(double x, std::int64_t where, std::int64_t k) {
        std::int64_t i = k - 1;
        for (; i > 0 && size[i - 1] < x; --i) {
            size[i] = size[i - 1];
            position[i] = position[i - 1];
        }
        size[i] = x;
        position[i] = where;
    }
};

double size_of(double x) { return x == x ? std::fabs(x) : 0.0; }

// Whether one of eight neighbours is larger than its threshold.
bool any_larger(const double* x, const double* thresholds) {
    bool any = false;
    for (int j = 0; j < kColumns; ++j) any |= std::fabs(x[j]) > thresholds[j];
    return any;
}

void mark_rows(const double* M, std::int64_t n, std::int64_t m, std::int64_t stride, std::int64_t k,
               unsigned char* kept, Pacer& pacer) {
    Largest best;
    double thresholds[kColumns];
    for (std::int64_t i = 0; i < n; ++i) {
        best.clear(k);
        std::fill(thresholds, thresholds + kColumns, -1.0);
        for (std::int64_t first = 0; first < m; first += kColumns) {
            const std::int64_t end = std::min(first + kColumns, m);
            if (first >= k && end == first + kColumns && !any_larger(M + i * stride + first, thresholds)) continue;
            for (std::int64_t j = first; j < end; ++j) {
                const double x = size_of(M[i * stride + j]);
                if (x > best.size[k - 1]) best.offer(x, j, k);
            }
            std::fill(thresholds, thresholds + kColumns, best.size[k - 1]);
        }
        for (std::int64_t a = 0; a < k; ++a) kept[i * m + best.position[a]] = 1;
        pacer.did(m);
    }
}

void mark_columns(const double* M, std::int64_t n, std::int64_t m, std::int64_t stride, std::int64_t k,
                  unsigned char* kept, Pacer& pacer) {
    Largest best[kColumns];
    double thresholds[kColumns];
    for (std::int64_t j0 = 0; j0 < m; j0 += kColumns) {
        const std::int64_t width = std::min(kColumns, m - j0);
        for (Largest& b : best) b.clear(k);
        for (std::int64_t i = 0; i < n; ++i) {
            const double* const x = M + i * stride + j0;
            if (i >= k && width == kColumns && !any_larger(x, thresholds)) continue;
            for (std::int64_t j = 0; j < width; ++j) {
                if (size_of(x[j]) > best[j].size[k - 1]) best[j].offer(size_of(x[j]), i, k);
                thresholds[j] = best[j].size[k - 1];
            }
        }
        for (std::int64_t j = 0; j < width; ++j)
            for (std::int64_t a = 0; a < k; ++a) kept[best[j].position[a] * m + j0 + j] = 1;
        pacer.did(n * kColumns);
    }
}

// Mark the k largest of the n entries x[0], x[step], ... by partition; `scratch` has n places.
void mark_by_partition(const double* x, std::int64_t n, std::int64_t step, std::int64_t k, double* scratch,
                       unsigned char* kept, std::int64_t kept_step, Pacer& pacer) {
    for (std::int64_t i = 0; i < n; ++i) scratch[i] = size_of(x[i * step]);
    double threshold = -1;
    if (k < n) {
        std::nth_element(scratch, scratch + k - 1, scratch + n, std::greater<double>());
        threshold = scratch[k - 1];
    }
    std::int64_t left = std::min(k, n);
    for (std::int64_t i = 0; i < n; ++i)
        if (size_of(x[i * step]) > threshold) {
            kept[i * kept_step] = 1;
            --left;
        }
    for (std::int64_t i = 0; i < n && left > 0; ++i)
        if (size_of(x[i * step]) == threshold) {
            kept[i * kept_step] = 1;
            --left;
        }
    pacer.did(4 * n);
}

}  // namespace

void mark_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t stride,
                  std::int64_t per_row, std::int64_t per_column, unsigned char* kept, const Poll& poll) {
    Pacer pacer{poll};
    std::fill(kept, kept + n_rows * n_columns, static_cast<unsigned char>(0));
    std::vector<double> scratch(std::size_t(std::max(n_columns, n_rows)));
    if (per_row > 0 && per_row <= std::min(kMostSorted, n_columns))
        mark_rows(M, n_rows, n_columns, stride, per_row, kept, pacer);
    else if (per_row > 0)
        for (std::int64_t i = 0; i < n_rows; ++i)
            mark_by_partition(M + i * stride, n_columns, 1, per_row, scratch.data(), kept + i * n_columns, 1, pacer);
    if (per_column > 0 && per_column <= std::min(kMostSorted, n_rows))
        mark_columns(M, n_rows, n_columns, stride, per_column, kept, pacer);
    else if (per_column > 0)
        for (std::int64_t j = 0; j < n_columns; ++j)
            mark_by_partition(M + j, n_rows, stride, per_column, scratch.data(), kept + j, n_columns, pacer);
}

namespace {

// body(first, end) for one block of [0, n) after the other, with polls between them.
template <class Body>
void for_each_block(std::int64_t n, Pacer& pacer, const Body& body) {
    constexpr std::int64_t kBlock = 1 << 16;
    for (std::int64_t first = 0; first < n; first += kBlock) {
        body(first, std::min(n, first + kBlock));
        pacer.did(kBlock);
    }
}

using Keys = std::vector<std::uint64_t>;

// Sort the keys from bit `shift` on, `Bits` at a time, up to the highest bit; equal ones stay in their order. Returns
// where the keys with each value of the highest bits begin.
template <int Bits>
std::vector<std::size_t> sort_from(int shift, Keys& keys, Pacer& pacer) {
    const auto n = std::int64_t(keys.size());
    Keys sorted(keys.size());
    std::vector<std::size_t> begin;
    for (; shift < 64; shift += Bits) {
        std::vector<std::size_t> start((std::size_t(1) << Bits) + 1);
        const auto digit = [shift](std::uint64_t key) { return std::size_t(key >> shift) & ((1 << Bits) - 1); };
        for_each_block(n, pacer, [&](std::int64_t first, std::int64_t end) {
            for (std::int64_t i = first; i < end; ++i) ++start[digit(keys[std::size_t(i)]) + 1];
        });
        for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
        begin = start;
        for_each_block(n, pacer, [&](std::int64_t first, std::int64_t end) {
            for (std::int64_t i = first; i < end; ++i) {
                const std::uint64_t key = keys[std::size_t(i)];
                sorted[start[digit(key)]++] = key;
            }
        });
        keys.swap(sorted);
    }
    return begin;
}

// Sort the keys by their upper half.
void sort_by_upper_half(Keys& keys, Pacer& pacer) {
    constexpr std::size_t kFew = 256;  // where the counters of sort_from cost more
    if (keys.size() > kFew) {
        sort_from<11>(32, keys, pacer);  // counters that fit into the first-level cache
        return;
    }
    std::sort(keys.begin(), keys.end());  // the lower half ascends already where upper halves are equal
    pacer.did(kFew);
}

// The bits of a positive single-precision number, in reverse: larger numbers have smaller keys.
std::uint64_t key_of(float size) {
    std::uint32_t bits;
    std::memcpy(&bits, &size, sizeof bits);
    return std::uint64_t(~bits) << 32;
}

}  // namespace

void match_largest(const double* M, std::int64_t n_rows, std::int64_t n_columns, std::int64_t stride,
                   std::int64_t per_row, std::int64_t per_column, unsigned char* kept, const Poll& poll) {
    Pacer pacer{poll};
    std::fill(kept, kept + n_rows * n_columns, static_cast<unsigned char>(0));
    Keys keys(std::size_t(n_rows * n_columns));
    double largest = 0;
    for (std::int64_t i = 0; i < n_rows; ++i, pacer.did(n_columns))
        for (std::int64_t j = 0; j < n_columns; ++j) largest = std::max(largest, size_of(M[i * stride + j]));
    std::size_t count = 0;
    for (std::int64_t i = 0; i < n_rows; ++i, pacer.did(n_columns))
        for (std::int64_t j = 0; j < n_columns; ++j) {
            const double size = size_of(M[i * stride + j]);
            keys[count] = key_of(float(size / largest)) | std::uint64_t(i * n_columns + j);
            count += size > 0;
        }
    keys.resize(count);
    std::vector<std::int64_t> row_left(std::size_t(n_rows), per_row), column_left(std::size_t(n_columns), per_column);
    std::int64_t left = std::min(n_rows * std::min(per_row, n_columns), n_columns * std::min(per_column, n_rows));
    // The row of a position e is (e + 1/2) / n_columns, rounded down: rounding errors, below 2^-20 / n_columns, are
    // less than its distance from a whole number.
    const double per_position = 1.0 / double(n_columns);
    const auto row_of = [=](std::uint64_t key) {
        return std::size_t((double(std::uint32_t(key)) + 0.5) * per_position);
    };
    const auto column_of = [=](std::uint64_t key) {
        return std::size_t(std::uint32_t(key)) - row_of(key) * std::size_t(n_columns);
    };
    const auto is_free = [&](std::uint64_t key) {
        return row_left[row_of(key)] > 0 && column_left[column_of(key)] > 0;
    };
    // Entries of similar size are brought together. Then only those are sorted whose row and column are not yet full.
    constexpr int kBits = 12;  // sign, exponent and three bits of the mantissa
    const std::vector<std::size_t> begin = sort_from<kBits>(64 - kBits, keys, pacer);
    Keys free_keys;
    for (std::size_t group = 0; group + 1 < begin.size() && left > 0; ++group) {
        free_keys.clear();
        for (std::size_t a = begin[group]; a < begin[group + 1]; ++a, pacer.did(1))
            if (is_free(keys[a])) free_keys.push_back(keys[a]);
        sort_by_upper_half(free_keys, pacer);
        for (std::size_t a = 0; a < free_keys.size() && left > 0; ++a, pacer.did(1)) {
            if (!is_free(free_keys[a])) continue;
            --row_left[row_of(free_keys[a])], --column_left[column_of(free_keys[a])], --left;
            kept[std::uint32_t(free_keys[a])] = 1;
        }
    }
}

}  // namespace quickmeans
