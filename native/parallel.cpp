#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quickmeans {
namespace {

struct Stopped {};

// What the threads of one call share.
class Team {
  public:
    bool stopped() const { return stop_.load(); }
    void stop() { stop_.store(true); }
    void fail(std::exception_ptr error) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!error_) error_ = error;
        stop();
    }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }
    void begin() {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++n_running_;
    }
    void end() {
        const std::lock_guard<std::mutex> lock(mutex_);
        --n_running_;
        ended_.notify_one();
    }
    // Whether all threads have ended within a tenth of a second.
    bool wait() {
        std::unique_lock<std::mutex> lock(mutex_);
        return ended_.wait_for(lock, std::chrono::milliseconds(100), [this] { return n_running_ == 0; });
    }
    // The poll of a thread that is not the caller.
    static void check(void* team) {
        if (static_cast<Team*>(team)->stopped()) throw Stopped();
    }

  private:
    std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::condition_variable ended_;
    int n_running_ = 0;
    std::exception_ptr error_;
};

// Call a function; keep what it throws, and stop the team.
template <class Function>
void guarded(Team& team, const Function& function) {
    try {
        function();
    } catch (const Stopped&) {
    } catch (...) {
        team.fail(std::current_exception());
    }
}

}  // namespace

void for_each_chunk(std::int64_t n_chunks, int n_threads,
                    const std::function<bool(std::int64_t chunk, int thread, const Poll& poll)>& body,
                    const Poll& poll) {
    n_threads = int(std::min<std::int64_t>(n_threads, n_chunks));
    std::atomic<std::int64_t> next{0};
    Team team;
    const auto drive = [&](int thread, const Poll& own) {
        for (std::int64_t chunk; !team.stopped() && (chunk = next.fetch_add(1)) < n_chunks;) {
            if (!body(chunk, thread, own)) team.stop();
            own.call(own.context);
        }
    };
    const auto work = [&](int thread) {
        guarded(team, [&] { drive(thread, {Team::check, &team}); });
        team.end();
    };
    std::vector<std::thread> threads;
    threads.reserve(std::size_t(std::max(n_threads, 1)));
    try {
        for (int i = 1; i < n_threads; ++i) {
            team.begin();
            threads.emplace_back(work, i);
        }
    } catch (...) {
        team.end();  // the system has no more threads: those that run do all the work
    }
    guarded(team, [&] { drive(0, poll); });
    while (!team.wait()) guarded(team, [&] { poll.call(poll.context); });
    for (std::thread& thread : threads) thread.join();
    team.rethrow();
}

}  // namespace quickmeans
