// Positions grouped by label: a stable counting sort.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/types.hpp"

namespace quickmeans {

// order = the positions 0 .. n - 1 sorted by label, equal labels in their order; starts[k] = where label k begins, and
// starts[n_labels] = n. Throws std::invalid_argument for a label outside [0, n_labels). `poll` is called now and then.
template <class Label>
void group_by_label(const Label* labels, std::int64_t n, std::int64_t n_labels, std::int64_t* order,
                    std::int64_t* starts, const Poll& poll) {
    constexpr std::int64_t kBlock = 1 << 20;  // labels between two polls: some milliseconds
    for (std::int64_t k = 0; k <= n_labels; ++k) starts[k] = 0;
    for (std::int64_t first = 0; first < n; first += kBlock, poll.call(poll.context))
        for (std::int64_t i = first; i < n && i < first + kBlock; ++i) {
            if (labels[i] < 0 || labels[i] >= n_labels)
                throw std::invalid_argument("Label " + std::to_string(labels[i]) + " at position " + std::to_string(i) +
                                            " is not between 0 and " + std::to_string(n_labels - 1) + ".");
            ++starts[labels[i]];
        }
    for (std::int64_t k = 0, sum = 0; k <= n_labels; ++k) {
        const std::int64_t count = starts[k];
        starts[k] = sum;
        sum += count;
    }
    for (std::int64_t first = 0; first < n; first += kBlock, poll.call(poll.context))
        for (std::int64_t i = first; i < n && i < first + kBlock; ++i) order[starts[labels[i]]++] = i;
    // Every start has moved to the next one's place.
    for (std::int64_t k = n_labels; k > 0; --k) starts[k] = starts[k - 1];
    starts[0] = 0;
}

}  // namespace quickmeans
