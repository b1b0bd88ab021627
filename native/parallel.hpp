// Threads made per call: fork-safe, and no second runtime in the process.
#pragma once

#include <cstdint>
#include <functional>

namespace quickmeans {

// Call body(chunk, thread) for the chunks 0 .. n_chunks - 1, handed out in order to at most n_threads threads, the
// calling one among them. When a body returns false no further chunks are begun. `poll` is called after each of the
// calling thread's chunks. What poll or a body throws stops the work and is passed on.
void for_each_chunk(std::int64_t n_chunks, int n_threads, const std::function<bool(std::int64_t, int)>& body,
                    const std::function<void()>& poll);

}  // namespace quickmeans
