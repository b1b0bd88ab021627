// Centers in panels, and the loop over all rows that are to be compared with them.
#pragma once

#include <limits>
#include <vector>

#include "dispatch.hpp"

namespace quickmeans {

// Put the centers, n_columns numbers each, into panels (see kPanel); `offset` gets one number for every center and
// -infinity for those that fill up the last panel.
template <class T, class Offset>
void pack_panels(const T* centers, std::int64_t n_centers, std::int64_t n_columns, const Offset& offset_of,
                 std::vector<T>& panels, std::vector<T>& offset) {
    const std::int64_t padded = (n_centers + kPanel - 1) / kPanel * kPanel;
    panels.assign(std::size_t(padded * n_columns), T(0));
    offset.assign(std::size_t(padded), -std::numeric_limits<T>::infinity());
    for (std::int64_t k = 0; k < n_centers; ++k) {
        offset[std::size_t(k)] = T(offset_of(k));
        const T* const center = centers + k * n_columns;
        T* const to = panels.data() + k / kPanel * kPanel * n_columns + k % kPanel;
        for (std::int64_t d = 0; d < n_columns; ++d) to[d * kPanel] = center[d];
    }
}

// Find the nearest centers of all rows of the job on at most so many threads. Returns -1, or the first row of the first
// chunk that holds a row outside the limit.
template <class T>
std::int64_t find_nearest(const NearestJob<T>& job, const InstructionSet& set, int n_threads, const Poll& poll);

}  // namespace quickmeans
