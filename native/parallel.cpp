#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quickmeans {

void for_each_chunk(std::int64_t n_chunks, int n_threads, const std::function<bool(std::int64_t, int)>& body,
                    const std::function<void()>& poll) {
    n_threads = int(std::min<std::int64_t>(n_threads, n_chunks));
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr error;
    std::mutex error_mutex;
    const auto drive = [&](int thread) {
        try {
            for (std::int64_t chunk; !stop.load() && (chunk = next.fetch_add(1)) < n_chunks;) {
                if (!body(chunk, thread)) stop.store(true);
                if (thread == 0) poll();
            }
        } catch (...) {
            const std::lock_guard<std::mutex> lock(error_mutex);
            if (!error) error = std::current_exception();
            stop.store(true);
        }
    };
    std::vector<std::thread> threads;
    try {
        threads.reserve(std::size_t(n_threads));
        for (int i = 1; i < n_threads; ++i) threads.emplace_back(drive, i);
    } catch (...) {
        // No more threads to be had: those that run share the work.
    }
    drive(0);
    for (std::thread& thread : threads) thread.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace quickmeans
