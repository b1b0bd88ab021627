// Weighted sums of the rows of each cluster, and moments of rows, in float64.
//
// One thread adds the members of a cluster in the order of their list, so the number of threads changes no bit.
#pragma once

#include <cmath>

#include "pacer.hpp"
#include "tile.hpp"

namespace quickmeans::QM_ISA {

// sum[0..n) += weight * the n elements of type S that start at `from`, `stride` bytes apart.
template <class S>
void add_scaled(const char* from, std::int64_t stride, double weight, double* sum, std::int64_t n) {
    if (stride == std::int64_t(sizeof(S)))
        for (std::int64_t i = 0; i < n; ++i)
            sum[i] += weight * convert_one<double, S>(from + i * std::int64_t(sizeof(S)));
    else
        for (std::int64_t i = 0; i < n; ++i) sum[i] += weight * convert_one<double, S>(from + i * stride);
}

// With d = x - shift: sum[0..n) += weight * d, square[0..n) += weight * d^2.
template <class S>
void add_moments(const char* from, std::int64_t stride, double weight, const double* shift, double* sum, double* square,
                 std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) {
        const double d = convert_one<double, S>(from + i * stride) - shift[i];
        sum[i] += weight * d;
        square[i] += weight * d * d;
    }
}

using AddMoments = void (*)(const char*, std::int64_t, double, const double*, double*, double*, std::int64_t);

inline AddMoments moment_adder(Scalar scalar) {
    static constexpr AddMoments table[] = {
        add_moments<Half>,          add_moments<float>,         add_moments<double>,       add_moments<std::int8_t>,
        add_moments<std::int16_t>,  add_moments<std::int32_t>,  add_moments<std::int64_t>, add_moments<std::uint8_t>,
        add_moments<std::uint16_t>, add_moments<std::uint32_t>, add_moments<std::uint64_t>};
    static_assert(sizeof table / sizeof *table == std::size_t(Scalar::count));
    return table[int(scalar)];
}

// Add the moments of these rows to those of a block.
inline void moments(const MomentJob& job, std::int64_t block, const Range& rows, const Poll& poll) {
    const RowsView& x = job.rows;
    const AddMoments add = moment_adder(x.scalar);
    const std::int64_t at = block * x.n_columns;
    Pacer pacer{poll};
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
        add(x.data + i * x.row_stride, x.column_stride, job.weights ? job.weights[i] : 1.0, job.shift, job.sums + at,
            job.squares + at, x.n_columns);
        pacer.did(2 * x.n_columns);
    }
}

// out[0..n) = scale * (x - origin); without an origin scale * x / |x|, where a row without length stays zero.
template <class S>
void center_row(const char* from, std::int64_t stride, const double* origin, double scale, float* out, std::int64_t n) {
    const auto value = [&](std::int64_t i) { return convert_one<double, S>(from + i * stride); };
    if (origin) {
        if (stride == std::int64_t(sizeof(S)))
            for (std::int64_t i = 0; i < n; ++i)
                out[i] = float(scale * (convert_one<double, S>(from + i * std::int64_t(sizeof(S))) - origin[i]));
        else
            for (std::int64_t i = 0; i < n; ++i) out[i] = float(scale * (value(i) - origin[i]));
        return;
    }
    double square = 0;
    for (std::int64_t i = 0; i < n; ++i) square += value(i) * value(i);
    const double length = square > 0 ? std::sqrt(square) : 1.0;
    for (std::int64_t i = 0; i < n; ++i) out[i] = float(scale * (value(i) / length));
}

using CenterRow = void (*)(const char*, std::int64_t, const double*, double, float*, std::int64_t);

inline CenterRow centerer(Scalar scalar) {
    static constexpr CenterRow table[] = {
        center_row<Half>,          center_row<float>,         center_row<double>,       center_row<std::int8_t>,
        center_row<std::int16_t>,  center_row<std::int32_t>,  center_row<std::int64_t>, center_row<std::uint8_t>,
        center_row<std::uint16_t>, center_row<std::uint32_t>, center_row<std::uint64_t>};
    static_assert(sizeof table / sizeof *table == std::size_t(Scalar::count));
    return table[int(scalar)];
}

inline void center_rows(const CenterJob& job, const Range& rows, const Poll& poll) {
    const RowsView& x = job.rows;
    const CenterRow center = centerer(x.scalar);
    Pacer pacer{poll};
    for (std::int64_t i = rows.first; i < rows.first + rows.count; ++i) {
        center(x.data + i * x.row_stride, x.column_stride, job.origin, job.scale, job.out + i * x.n_columns,
               x.n_columns);
        pacer.did(2 * x.n_columns);
    }
}

using AddScaled = void (*)(const char*, std::int64_t, double, double*, std::int64_t);

inline AddScaled adder(Scalar scalar) {
    static constexpr AddScaled table[] = {
        add_scaled<Half>,          add_scaled<float>,         add_scaled<double>,       add_scaled<std::int8_t>,
        add_scaled<std::int16_t>,  add_scaled<std::int32_t>,  add_scaled<std::int64_t>, add_scaled<std::uint8_t>,
        add_scaled<std::uint16_t>, add_scaled<std::uint32_t>, add_scaled<std::uint64_t>};
    static_assert(sizeof table / sizeof *table == std::size_t(Scalar::count));
    return table[int(scalar)];
}

// Add these columns of the members of a cluster to its sum.
inline void add_members(const SumJob& job, std::int64_t cluster, const Range& columns, const Poll& poll) {
    const RowsView& x = job.rows;
    const AddScaled add = adder(x.scalar);
    Pacer pacer{poll};
    double* sum = job.sums + cluster * x.n_columns + columns.first;
    for (std::int64_t m = job.starts[cluster]; m < job.starts[cluster + 1]; ++m) {
        const char* from = x.data + job.members[m] * x.row_stride + columns.first * x.column_stride;
        add(from, x.column_stride, job.weights ? job.weights[m] : 1.0, sum, columns.count);
        pacer.did(columns.count);
    }
}

// Take rows from the clusters that they leave and add them to those that they join: so many rows of the chunk that
// begins with the first row of the range.
inline void add_changes(const ChangeJob& job, const Range& chunk, const ClusterTotals& totals, const Poll& poll) {
    const std::int64_t D = job.n_columns;
    Pacer pacer{poll};
    const auto add = [&](std::int64_t k, double weight, const float* __restrict x) {
        double* __restrict sum = totals.sums + k * D;
        for (std::int64_t d = 0; d < D; ++d) sum[d] += weight * double(x[d]);
        totals.weights[k] += weight;
    };
    for (std::int64_t j = chunk.first; j < chunk.first + chunk.count; ++j) {
        const std::int64_t i = chunk.first + job.changes[j], was = job.summed[i], is = job.labels[i];
        if (was >= 0) add(was, -job.weights[i], job.rows + i * D), --totals.sizes[was];
        add(is, job.weights[i], job.rows + i * D);
        ++totals.sizes[is];
        job.summed[i] = std::int32_t(is);
        pacer.did(2 * D);
    }
}

// Add the rows of an index times their weights to the sum; returns the sum of the weights.
inline double sum_listed(const float* rows, std::int64_t n_columns, const std::int64_t* index, std::int64_t count,
                         const double* weights, double* __restrict sum) {
    double total = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const double weight = weights[index[i]];
        const float* __restrict x = rows + index[i] * n_columns;
        for (std::int64_t d = 0; d < n_columns; ++d) sum[d] += weight * double(x[d]);
        total += weight;
    }
    return total;
}

}  // namespace quickmeans::QM_ISA
