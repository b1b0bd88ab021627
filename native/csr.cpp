#include "csr.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "dispatch.hpp"
#include "kernels/pacer.hpp"
#include "parallel.hpp"

namespace quickmeans {
namespace {

// Multiply-adds that are worth a thread: starting one takes 20 to 50 microseconds.
constexpr double kWorkPerThread = 1e6;
constexpr std::int64_t kRowsPerChunk = 256;
constexpr std::int64_t kColumnsPerChunk = 1024;
// Squares below this share of what they are the difference of are computed again, entry by entry.
constexpr double kClose = 1e-8;

std::int64_t n_chunks(std::int64_t n, std::int64_t size) { return (n + size - 1) / size; }

Range chunk_range(std::int64_t chunk, std::int64_t n, std::int64_t size) {
    return {chunk * size, std::min(size, n - chunk * size)};
}

// The sum of (scale x_d - shift(d))^2 over all columns of a row.
template <class Entries, class Shift>
double exact_square(const Entries& x, std::int64_t row, std::int64_t n_columns, double scale, const Shift& shift) {
    std::vector<double> values(std::size_t(n_columns), 0);
    for (std::int64_t j = x.begin(row); j < x.end(row); ++j)
        values[std::size_t(x.columns[j])] = scale * double(x.values[j]);
    double square = 0;
    for (std::int64_t d = 0; d < n_columns; ++d) {
        const double apart = values[d] - shift(d);
        square += apart * apart;
    }
    return square;
}

template <class V, class I>
bool check(const CsrEntries<V, I>& x, const CsrView& rows, std::int64_t n_stored, const Poll& poll) {
    if (rows.n_rows < 0 || x.starts[0] != 0) throw std::invalid_argument("The row pointers of X must begin with 0.");
    for (std::int64_t i = 0; i < rows.n_rows; ++i)
        if (x.end(i) < x.begin(i) || x.end(i) > n_stored)
            throw std::invalid_argument("The row pointers of X must not fall, and not exceed its number of entries.");
    Pacer pacer{poll};
    std::vector<std::int64_t> seen;  // per column, the last row that is not in ascending order and has an entry there
    bool distinct = true;
    for (std::int64_t i = 0; i < rows.n_rows; ++i) {
        bool ascending = true;
        for (std::int64_t j = x.begin(i), last = -1; j < x.end(i); ++j) {
            const auto column = std::int64_t(x.columns[j]);
            if (column < 0 || column >= rows.n_columns)
                throw std::invalid_argument("The sparse matrix X names column " + std::to_string(column) +
                                            ", but it has " + std::to_string(rows.n_columns) + " columns.");
            ascending &= column > last;
            last = column;
        }
        pacer.did(x.end(i) - x.begin(i));
        if (ascending) continue;
        seen.resize(std::size_t(rows.n_columns), -1);
        for (std::int64_t j = x.begin(i); j < x.end(i); ++j) {
            distinct &= seen[std::size_t(x.columns[j])] != i;
            seen[std::size_t(x.columns[j])] = i;
        }
    }
    return distinct;
}

}  // namespace

int csr_threads(double multiply_adds, int n_threads) {
    return std::max(1, int(std::min(double(n_threads), multiply_adds / kWorkPerThread)));
}

std::int64_t n_entries(const CsrView& rows) {
    return with_entries(rows, [&](const auto& x) { return std::int64_t(x.starts[rows.n_rows]); });
}

bool check_csr(const CsrView& rows, std::int64_t n_stored, const Poll& poll) {
    return with_entries(rows, [&](const auto& x) { return check(x, rows, n_stored, poll); });
}

// ---- centers --------------------------------------------------------------------------------------------------------

template <class T>
CsrCenters<T>::CsrCenters(std::int64_t n_centers, std::int64_t n_columns, const InstructionSet& set)
    : n_centers_(n_centers), n_columns_(n_columns), set_(&set) {
    const std::int64_t width = set.vector_bytes / std::int64_t(sizeof(T));
    stride_ = (n_centers + width - 1) / width * width;
    values_.assign(std::size_t(n_columns * stride_), T(0));
    offset_.assign(std::size_t(stride_), -std::numeric_limits<T>::max() / 4);
}

template <class T>
template <class S>
void CsrCenters<T>::fill(const S* centers, const double* offset, int n_threads, const Poll& poll) {
    constexpr std::int64_t kBlock = 64;  // columns of all centers that stay in the cache while they are transposed
    std::copy(offset, offset + n_centers_, offset_.begin());
    const auto chunk = [&](std::int64_t c, int, const Poll&) {
        const Range range = chunk_range(c, n_columns_, kColumnsPerChunk);
        for (std::int64_t d = range.first; d < range.first + range.count; d += kBlock)
            for (std::int64_t k = 0; k < n_centers_; ++k)
                for (std::int64_t e = d; e < std::min(d + kBlock, range.first + range.count); ++e)
                    column(e)[k] = T(centers[k * n_columns_ + e]);
        return true;
    };
    for_each_chunk(n_chunks(n_columns_, kColumnsPerChunk), csr_threads(double(n_columns_ * n_centers_), n_threads),
                   chunk, poll);
}

template class CsrCenters<float>;
template class CsrCenters<double>;
template void CsrCenters<float>::fill(const float*, const double*, int, const Poll&);
template void CsrCenters<float>::fill(const double*, const double*, int, const Poll&);
template void CsrCenters<double>::fill(const double*, const double*, int, const Poll&);

template <class T>
std::int64_t csr_nearest(const CsrView& rows, const CsrCenters<T>& centers, std::int32_t* labels, T* best, T* second,
                         int n_threads, const Poll& poll) {
    const CsrNearestJob<T> job{rows, centers.table(), nullptr, labels, best, second};
    const std::int64_t n = n_chunks(rows.n_rows, kRowsPerChunk);
    std::vector<std::int64_t> bad(std::size_t(n), -1);
    std::vector<std::vector<T>> scratch(std::size_t(std::max(n_threads, 1)));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        scratch[thread].resize(std::size_t(centers.stride()));
        const Range range = chunk_range(c, rows.n_rows, kRowsPerChunk);
        bad[c] = kernels_of<T>(centers.set()).csr_nearest(job, range, scratch[thread].data(), own_poll);
        return bad[c] < 0;
    };
    for_each_chunk(n, csr_threads(double(n_entries(rows)) * double(centers.stride()) / 4, n_threads), chunk, poll);
    for (const std::int64_t row : bad)
        if (row >= 0) return row;
    return -1;
}

template std::int64_t csr_nearest(const CsrView&, const CsrCenters<float>&, std::int32_t*, float*, float*, int,
                                  const Poll&);
template std::int64_t csr_nearest(const CsrView&, const CsrCenters<double>&, std::int32_t*, double*, double*, int,
                                  const Poll&);

// ---- moments and norms ----------------------------------------------------------------------------------------------

void csr_sums(const CsrView& rows, const double* weights, double* sums, const Poll& poll) {
    with_entries(rows, [&](const auto& x) {
        Pacer pacer{poll};
        for (std::int64_t i = 0; i < rows.n_rows; ++i) {
            const double weight = weights ? weights[i] : 1.0;
            for (std::int64_t j = x.begin(i); j < x.end(i); ++j) sums[x.columns[j]] += weight * double(x.values[j]);
            pacer.did(x.end(i) - x.begin(i) + 1);
        }
    });
}

void csr_squares(const CsrView& rows, const double* weights, const double* mean, double* squares, const Poll& poll) {
    std::vector<double> covered(std::size_t(rows.n_columns), 0);  // the weight of the rows that have an entry
    double total = 0;
    with_entries(rows, [&](const auto& x) {
        Pacer pacer{poll};
        for (std::int64_t i = 0; i < rows.n_rows; ++i) {
            const double weight = weights ? weights[i] : 1.0;
            total += weight;
            for (std::int64_t j = x.begin(i); j < x.end(i); ++j) {
                const double apart = double(x.values[j]) - mean[x.columns[j]];
                squares[x.columns[j]] += weight * apart * apart;
                covered[std::size_t(x.columns[j])] += weight;
            }
            pacer.did(2 * (x.end(i) - x.begin(i) + 1));
        }
    });
    for (std::int64_t d = 0; d < rows.n_columns; ++d)
        squares[d] += std::max(total - covered[d], 0.0) * mean[d] * mean[d];
}

void csr_norms(const CsrView& rows, const double* mean, double* norms, int n_threads, const Poll& poll) {
    double square = 0;
    for (std::int64_t d = 0; d < rows.n_columns; ++d) square += mean[d] * mean[d];
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const Range range = chunk_range(c, rows.n_rows, kRowsPerChunk);
        Pacer pacer{own_poll};
        with_entries(rows, [&](const auto& x) {
            for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
                double sum = 0, less = 0;
                for (std::int64_t j = x.begin(i); j < x.end(i); ++j) {
                    const double m = mean[x.columns[j]], apart = double(x.values[j]) - m;
                    sum += apart * apart;
                    less += m * m;
                }
                const double rest = square - less;
                pacer.did(2 * (x.end(i) - x.begin(i) + 1));
                norms[i] = sum + rest;
                if (norms[i] > kClose * square) continue;
                norms[i] = exact_square(x, i, rows.n_columns, 1.0, [&](std::int64_t d) { return mean[d]; });
                pacer.did(rows.n_columns);
            }
        });
        return true;
    };
    for_each_chunk(n_chunks(rows.n_rows, kRowsPerChunk), csr_threads(double(n_entries(rows)), n_threads), chunk, poll);
}

// ---- distances ------------------------------------------------------------------------------------------------------

namespace {

// Squares and products with the mean of all centers.
struct CenterSquares {
    std::vector<double> squares, along;  // |c|^2 and <m, c>

    CenterSquares(const CsrGeometry& g, std::int64_t n_columns)
        : squares(std::size_t(g.n_centers), 0), along(std::size_t(g.n_centers), 0) {
        for (std::int64_t k = 0; k < g.n_centers; ++k)
            for (std::int64_t d = 0; d < n_columns; ++d) {
                const double c = g.centers[k * n_columns + d];
                squares[k] += c * c;
                along[k] += c * g.mean[d];
            }
    }
    // The squared distance of a row from a center by their product, or by the differences where that has cancelled.
    template <class Entries>
    double square(const Entries& x, const CsrGeometry& g, std::int64_t n_columns, std::int64_t row, std::int64_t k,
                  double product) const {
        const double norm = g.spherical ? 1.0 : g.norms[row];
        const double scale = g.spherical ? 1 / std::sqrt(g.norms[row]) : 1.0;
        const double size = norm + squares[k] + std::abs(along[k]);
        const double square = norm + squares[k] - 2 * (scale * product - along[k]);
        if (square > kClose * size) return square;
        const double* const center = g.centers + k * n_columns;
        const auto shift = [&](std::int64_t d) { return g.mean[d] + center[d]; };
        return exact_square(x, row, n_columns, scale, shift);
    }
};

}  // namespace

void csr_own_squares(const CsrView& rows, const CsrGeometry& geometry, const std::int32_t* labels, double* squares,
                     int n_threads, const Poll& poll) {
    const CenterSquares known(geometry, rows.n_columns);
    const auto chunk = [&](std::int64_t c, int, const Poll& own_poll) {
        const Range range = chunk_range(c, rows.n_rows, kRowsPerChunk);
        Pacer pacer{own_poll};
        with_entries(rows, [&](const auto& x) {
            for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
                const double* const center = geometry.centers + labels[i] * rows.n_columns;
                double product = 0;
                for (std::int64_t j = x.begin(i); j < x.end(i); ++j)
                    product += double(x.values[j]) * center[x.columns[j]];
                squares[i] = known.square(x, geometry, rows.n_columns, i, labels[i], product);
                pacer.did(4 * (x.end(i) - x.begin(i) + 1));
            }
        });
        return true;
    };
    for_each_chunk(n_chunks(rows.n_rows, kRowsPerChunk), csr_threads(double(n_entries(rows)), n_threads), chunk, poll);
}

template <class Out>
void csr_distances(const CsrView& rows, const CsrGeometry& geometry, const InstructionSet& set, Out* out, int n_threads,
                   const Poll& poll) {
    const std::int64_t K = geometry.n_centers;
    const CenterSquares known(geometry, rows.n_columns);
    CsrCenters<double> centers(K, rows.n_columns, set);
    centers.fill(geometry.centers, std::vector<double>(std::size_t(K), 0).data(), n_threads, poll);
    const CsrTable<double> table = centers.table();
    constexpr std::int64_t kRows = 16;  // whose scores stay in the cache
    std::vector<std::vector<double>> scratch(std::size_t(std::max(n_threads, 1)));
    const auto chunk = [&](std::int64_t c, int thread, const Poll& own_poll) {
        const Range range = chunk_range(c, rows.n_rows, kRows);
        std::vector<double>& scores = scratch[thread];
        scores.resize(std::size_t(kRows * table.stride));
        set.twofold.csr_scores(rows, table, range, nullptr, scores.data(), own_poll);
        with_entries(rows, [&](const auto& x) {
            for (std::int64_t j = 0; j < range.count; ++j)
                for (std::int64_t k = 0; k < K; ++k) {
                    const std::int64_t i = range.first + j;
                    const double product = scores[j * table.stride + k];
                    out[i * K + k] = Out(std::sqrt(known.square(x, geometry, rows.n_columns, i, k, product)));
                }
        });
        return true;
    };
    for_each_chunk(n_chunks(rows.n_rows, kRows), csr_threads(double(n_entries(rows)) * double(K) / 4, n_threads), chunk,
                   poll);
}

template void csr_distances(const CsrView&, const CsrGeometry&, const InstructionSet&, float*, int, const Poll&);
template void csr_distances(const CsrView&, const CsrGeometry&, const InstructionSet&, double*, int, const Poll&);

}  // namespace quickmeans
