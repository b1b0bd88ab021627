// All kernels of one instruction set. A file that includes this defines first
//   QM_ISA             its namespace
//   QM_NAME            its name
//   QM_VECTOR_BYTES    the bytes of a vector
//   QM_MAX_TILE_BYTES  the bytes of one coordinate of the widest tile: with more the sums of a sparse row, one vector
//                      each, would not fit into the registers
//   QM_DENSE_VECTORS   vectors per row in the inner loop of a dense product: with kDenseRows rows their sums, the
//                      inputs and one coefficient fill the registers (16 of them, 32 with AVX-512)
#pragma once

#include "chain.hpp"
#include "csr.hpp"
#include "distances.hpp"
#include "gaussian.hpp"
#include "groups.hpp"
#include "listed.hpp"
#include "nearest.hpp"
#include "on_support.hpp"
#include "panel.hpp"
#include "scan.hpp"
#include "seeding.hpp"
#include "shortlist.hpp"
#include "sparse.hpp"
#include "split.hpp"
#include "sums.hpp"
#include "support.hpp"

namespace quickmeans::QM_ISA {

// Tile<T, N>::run for the N that makes tiles of `lanes` rows.
template <template <class, int> class Tile, class T, class Job>
bool with_lanes(const Job& job, const Range& rows, int lanes, const Workspace<T>& w) {
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
constexpr Kernels<T> kKernels{
    .product = {with_lanes<ProductTile, T, ProductJob<T>>, product_row<T>},
    .settle = {with_lanes<SettleTile, T, SettleJob<T>>, settle_row<T>},
    .gaussian = {with_lanes<GaussianTile, T, GaussianJob<T>>, gaussian_row<T>},
    .nearest = {nearest<T>, make_tiles<T>, kNearestVectors * kWidth<T>},
    .groups = {place_rows<T>, search_groups<T>},
    .distances = distances<T>,
    .csr_nearest = csr_nearest<T>,
    .csr_scores = csr_scores<T>,
};

constexpr InstructionSet kInstructionSet{
    .name = QM_NAME,
    .max_tile_bytes = QM_MAX_TILE_BYTES,
    .vector_bytes = QM_VECTOR_BYTES,
    .single = kKernels<float>,
    .twofold = kKernels<double>,
    .routines = {.add_members = add_members,
                 .add_changes = add_changes,
                 .moments = moments,
                 .center_rows = center_rows,
                 .squared_differences = squared_differences,
                 .seed_block = seed_block,
                 .all_scores = all_scores,
                 .square_rows = square_rows,
                 .own_distances = own_distances,
                 .split = split,
                 .nearest_listed = nearest_listed,
                 .score_listed = score_listed,
                 .sum_rows = sum_listed,
                 .fit_rows = fit_rows,
                 .sparse_times = sparse_times,
                 .support_dots = support_dots,
                 .left_on_support = left_on_support,
                 .right_on_support = right_on_support,
                 .descend = descend,
                 .inner_product = inner_product,
                 .transpose = transpose_cells,
                 .weigh_and_subtract = weigh_and_subtract,
                 .scale_cells = scale_cells,
                 .scan_list = scan_list,
                 .encode_rows = kHasCodes ? encode_rows : nullptr,
                 .sort_best = sort_best,
                 .project = project},
};

}  // namespace quickmeans::QM_ISA
