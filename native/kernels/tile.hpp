// Tiles: `lanes` rows, transposed, so that the values of one coordinate are contiguous.
#pragma once

#include "types.hpp"
#include "vector.hpp"

namespace quickmeans::QM_ISA {

// A 16-bit floating-point number that can be read.
struct Half {
    std::uint16_t bits;
    operator float() const {
        const std::uint32_t sign = std::uint32_t(bits & 0x8000u) << 16;
        const std::uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
        if (exponent == 0) return (sign ? -0x1p-24f : 0x1p-24f) * float(fraction);
        const std::uint32_t word = sign | ((exponent == 31 ? 255u : exponent + 112u) << 23) | (fraction << 13);
        float value;
        __builtin_memcpy(&value, &word, sizeof value);
        return value;
    }
};

template <class T, class S>
inline T convert_one(const char* p) {
    S s;
    __builtin_memcpy(&s, p, sizeof s);
    return T(s);
}

// to[0..n) = the n elements of type S that start at `from`, `stride` bytes apart.
template <class T, class S>
void convert(const char* from, std::int64_t stride, T* to, std::int64_t n) {
    if (stride == std::int64_t(sizeof(S)))
        for (std::int64_t i = 0; i < n; ++i) to[i] = convert_one<T, S>(from + i * std::int64_t(sizeof(S)));
    else
        for (std::int64_t i = 0; i < n; ++i) to[i] = convert_one<T, S>(from + i * stride);
}

template <class T>
using Convert = void (*)(const char*, std::int64_t, T*, std::int64_t);

template <class T>
Convert<T> converter(Scalar scalar) {
    static constexpr Convert<T> table[] = {
        convert<T, Half>,          convert<T, float>,         convert<T, double>,       convert<T, std::int8_t>,
        convert<T, std::int16_t>,  convert<T, std::int32_t>,  convert<T, std::int64_t>, convert<T, std::uint8_t>,
        convert<T, std::uint16_t>, convert<T, std::uint32_t>, convert<T, std::uint64_t>};
    static_assert(sizeof table / sizeof *table == std::size_t(Scalar::count));
    return table[int(scalar)];
}

template <class T>
constexpr Scalar kScalarOf = sizeof(T) == 4 ? Scalar::f32 : Scalar::f64;

inline std::int64_t position(const RowsView& x, std::int64_t i) { return x.index ? x.index[i] : i; }
inline const char* row_at(const RowsView& x, std::int64_t i) { return x.data + position(x, i) * x.row_stride; }

// Whether all numbers seen lie in [-limit, limit]. A sum of 0 * x is zero unless some x is NaN or infinite; there are
// four sums, so that no addition waits for the last.
template <class T>
struct RangeCheck {
    Vec<T> sum[4] = {}, low = {}, high = {};
    void see(int i, Vec<T> v) {
        sum[i % 4] += v * T(0);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    bool within(T limit) const {
        const Vec<T> all = sum[0] + sum[1] + (sum[2] + sum[3]);
        bool fine = true;
        for (int i = 0; i < kWidth<T>; ++i) fine &= all[i] == T(0) && low[i] >= -limit && high[i] <= limit;
        return fine;
    }
};

// Transpose W rows x W columns into the tile: tile[column][lane..lane + W). Of these, n_columns are kept.
template <class T>
inline void transpose_in(const char* const* row, std::int64_t column, T* tile, int lanes, int n_columns,
                         RangeCheck<T>& check) {
    constexpr int W = kWidth<T>;
    Vec<T> m[W];
    for (int i = 0; i < W; ++i) __builtin_memcpy(&m[i], row[i] + column * std::int64_t(sizeof(T)), sizeof m[i]);
    transpose<T>(m);
    if (n_columns == W) {
        for (int i = 0; i < W; ++i) check.see(i, m[i]);
        for (int i = 0; i < W; ++i) store(tile + i * lanes, m[i]);
    } else {
        for (int i = 0; i < n_columns; ++i) check.see(i, m[i]);
        for (int i = 0; i < n_columns; ++i) store(tile + i * lanes, m[i]);
    }
}

// The columns of W rows from `column` on, by way of a converted copy.
template <class T>
inline void transpose_converted(const RowsView& x, const char* const* source, std::int64_t column, T* tile, int lanes,
                                T* staging, RangeCheck<T>& check) {
    constexpr int W = kWidth<T>;
    const Convert<T> to_staging = converter<T>(x.scalar);
    for (std::int64_t j = column; j < x.n_columns; j += kStagingColumns) {
        const std::int64_t left = x.n_columns - j, n = left < kStagingColumns ? left : kStagingColumns;
        const char* staged[W];
        for (int i = 0; i < W; ++i) {
            T* to = staging + i * kStagingColumns;
            staged[i] = reinterpret_cast<const char*>(to);
            to_staging(source[i] + j * x.column_stride, x.column_stride, to, n);
            for (std::int64_t k = n; k % W; ++k) to[k] = T(0);
        }
        for (std::int64_t k = 0; k < n; k += W)
            transpose_in(staged, k, tile + (j + k) * lanes, lanes, int(n - k < W ? n - k : W), check);
    }
}

// For arrays whose rows are contiguous or nearly so. Lanes past the last row repeat it. The last columns of rows that
// need no conversion are read in a vector that overlaps the one before, or, if rows are shorter than a vector, with
// the numbers after them, where the array goes on.
template <class T>
bool load_by_row(const RowsView& x, std::int64_t first, std::int64_t count, T* tile, int lanes, T* staging, T limit) {
    constexpr int W = kWidth<T>;
    const bool direct = x.scalar == kScalarOf<T> && x.column_stride == std::int64_t(sizeof(T));
    RangeCheck<T> check;
    for (int lane = 0; lane < lanes; lane += W) {
        const char* source[W];
        bool readable = direct;
        for (int i = 0; i < W; ++i) {
            source[i] = row_at(x, first + (lane + i < count ? lane + i : count - 1));
            readable &= x.n_columns >= W || source[i] + W * sizeof(T) <= x.end;
        }
        if (!readable) {
            transpose_converted(x, source, 0, tile + lane, lanes, staging, check);
            continue;
        }
        std::int64_t j = 0;
        for (; j + W <= x.n_columns; j += W) transpose_in(source, j, tile + j * lanes + lane, lanes, W, check);
        if (j == x.n_columns) continue;
        if (x.n_columns < W)
            transpose_in(source, 0, tile + lane, lanes, int(x.n_columns), check);
        else
            transpose_in(source, x.n_columns - W, tile + (x.n_columns - W) * lanes + lane, lanes, W, check);
    }
    return check.within(limit);
}

// For arrays whose columns are contiguous or nearly so: they need no transpose.
template <class T>
bool load_by_column(const RowsView& x, std::int64_t first, std::int64_t count, T* tile, int lanes, T limit) {
    const Convert<T> to_tile = converter<T>(x.scalar);
    RangeCheck<T> check;
    for (std::int64_t j = 0; j < x.n_columns; ++j) {
        T* to = tile + j * lanes;
        to_tile(x.data + first * x.row_stride + j * x.column_stride, x.row_stride, to, count);
        for (std::int64_t i = count; i < lanes; ++i) to[i] = to[count - 1];
        for (int i = 0; i < lanes; i += kWidth<T>) check.see(i / kWidth<T>, load(to + i));
    }
    return check.within(limit);
}

inline std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

// tile[j * lanes + i] = x[first + i, j]; false if one of them is not in [-limit, limit].
template <class T>
bool load_tile(const RowsView& x, std::int64_t first, std::int64_t count, T* tile, int lanes, T* staging, T limit) {
    if (!x.index && magnitude(x.row_stride) < magnitude(x.column_stride))
        return load_by_column(x, first, count, tile, lanes, limit);
    return load_by_row(x, first, count, tile, lanes, staging, limit);
}

// The reverse: scores[i * row_step + k * column_step] = tile[k * lanes + i].
template <class T>
void store_tile(const T* tile, int lanes, std::int64_t n_columns, T* scores, std::int64_t row_step,
                std::int64_t column_step, std::int64_t count) {
    constexpr int W = kWidth<T>;
    if (row_step == 1) {
        for (std::int64_t k = 0; k < n_columns; ++k)
            __builtin_memcpy(scores + k * column_step, tile + k * lanes, std::size_t(count) * sizeof(T));
        return;
    }
    for (int lane = 0; lane < count; lane += W) {
        const int n_rows = count - lane < W ? int(count - lane) : W;
        for (std::int64_t k = 0; k < n_columns; k += W) {
            const int width = int(n_columns - k < W ? n_columns - k : W);
            T* to = scores + lane * row_step + k;
            Vec<T> m[W];
            for (int i = 0; i < W; ++i) m[i] = i < width ? load(tile + (k + i) * lanes + lane) : Vec<T>{};
            transpose<T>(m);
            if (n_rows == W && width == W)
                for (int i = 0; i < W; ++i) store(to + i * row_step, m[i]);
            else
                for (int i = 0; i < n_rows; ++i)
                    __builtin_memcpy(to + i * row_step, &m[i], std::size_t(width) * sizeof(T));
        }
    }
}

}  // namespace quickmeans::QM_ISA
