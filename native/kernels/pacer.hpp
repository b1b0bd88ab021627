// Polls at regular intervals of work, not at every step.
#pragma once

#include "types.hpp"

namespace quickmeans {

// Multiply-adds between two polls. The slowest loops do one in a nanosecond or two, so polls are some milliseconds
// apart. A poll reads the clock, which takes 30 to 60 nanoseconds.
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
