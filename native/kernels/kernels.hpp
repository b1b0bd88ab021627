// What one instruction set offers: the kernels for every width of tile.
#pragma once

#include "chain.hpp"
#include "gaussian.hpp"
#include "refine.hpp"
#include "seeding.hpp"
#include "shortlist.hpp"
#include "sparse.hpp"
#include "sums.hpp"
#include "support.hpp"

namespace quickmeans::QM_ISA {

// Call Tile<T, N>::run with the N that makes tiles of `lanes` rows.
template <template <class, int> class Tile, class T, class J>
bool with_lanes(const J& job, const Range& rows, int lanes, const Workspace<T>& w) {
    constexpr int line = 64 / QM_VECTOR_BYTES;
    switch (lanes * int(sizeof(T)) / 64) {
        case 1:
            return Tile<T, line>::run(job, rows, w);
        case 2:
            return Tile<T, 2 * line>::run(job, rows, w);
#if QM_MAX_TILE_BYTES >= 256
        default:
            return Tile<T, 4 * line>::run(job, rows, w);
#else
        default:
            return false;
#endif
    }
}

template <class T>
bool tile(const Job<T>& job, const Range& rows, int lanes, const Workspace<T>& w) {
    return with_lanes<ProductTile, T>(job, rows, lanes, w);
}

template <class T>
bool settle_tile(const SettleJob<T>& job, const Range& rows, int lanes, const Workspace<T>& w) {
    return with_lanes<SettleTile, T>(job, rows, lanes, w);
}

template <class T>
bool gaussian_tile(const GaussianJob<T>& job, const Range& rows, int lanes, const Workspace<T>& w) {
    return with_lanes<GaussianTile, T>(job, rows, lanes, w);
}

template <class T>
constexpr Kernels<T> kKernels{QM_NAME,        QM_MAX_TILE_BYTES, tile<T>,          row<T>,
                              settle_tile<T>, settle_row<T>,     gaussian_tile<T>, gaussian_row<T>};

constexpr Routines kRoutines{fit_rows, add_members, moments, seed, refine, sparse_times};

}  // namespace quickmeans::QM_ISA
