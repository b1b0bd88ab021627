// Sums over the lanes of as many vectors as a vector has lanes.
#pragma once

#include "intrinsics.hpp"

namespace quickmeans::QM_ISA {

// The even or odd blocks of `Block` lanes of a and b in turns.
template <int Block, int Half, class V>
inline V every_other(V a, V b) {
    return shuffle<Exchange<kWidth<float>, Block, Half>>(a, b, std::make_index_sequence<kWidth<float>>());
}

// Lane i of the result is the sum of the lanes of sums[i], which have four bytes.
template <int Block = 1, class V>
inline V sums_of_lanes(V* sums) {
    constexpr int n = kWidth<float> / Block;
    if constexpr (n == 1) {
        return sums[0];
    } else {
        for (int i = 0; i < n / 2; ++i)
            sums[i] = every_other<Block, 0>(sums[2 * i], sums[2 * i + 1]) +
                      every_other<Block, 1>(sums[2 * i], sums[2 * i + 1]);
        return sums_of_lanes<2 * Block>(sums);
    }
}

}  // namespace quickmeans::QM_ISA
