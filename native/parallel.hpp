// Threads that work for one call: a fork finds none at work, and the process gets no second thread pool.
#pragma once

#include <cstdint>
#include <functional>

#include "kernels/types.hpp"

namespace quickmeans {

// Call body(chunk, thread, poll) for the chunks 0 .. n_chunks - 1, handed out in ascending order to at most n_threads
// threads, one of which is the caller; it does not wait for one that has not begun when all chunks are handed out.
// After a body returns false no further chunk begins. `poll` is called by the calling thread after each chunk, and ten
// times a second while it waits for the others; bodies call theirs in long loops. An exception from `poll` or from a
// body ends the work at the other threads' next polls and is thrown again.
void for_each_chunk(std::int64_t n_chunks, int n_threads,
                    const std::function<bool(std::int64_t chunk, int thread, const Poll& poll)>& body,
                    const Poll& poll);

}  // namespace quickmeans
