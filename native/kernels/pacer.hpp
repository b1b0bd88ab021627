// Polls at regular intervals of work, not at every step.
#pragma once

#include "types.hpp"

namespace quickmeans {

// Multiply-adds between two polls. At the slowest rate that benchmarks/cost_model.py measures, 0.3 per nanosecond, that
// is a hundredth of a second; a poll reads the clock and costs 30 nanoseconds.
constexpr std::int64_t kWorkPerPoll = 1 << 21;

// Always inlined, so that no instruction set gets the code of another (see types.hpp).
struct Pacer {
    const Poll& poll;
    std::int64_t work = 0;

    [[gnu::always_inline]] void did(std::int64_t multiply_adds) {
        if ((work += multiply_adds) < kWorkPerPoll) return;
        work = 0;
        poll.call(poll.context);
    }
};

}  // namespace quickmeans
