#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace quickmeans {
namespace {

struct Stopped {};

// What the threads of one call share. It outlives the call, because a thread may begin when all is done: where other
// programs keep the processors busy, that can take as long as their turn.
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
    // Whether a thread that begins may take part; it must end later.
    bool begin() {
        const std::lock_guard<std::mutex> lock(mutex_);
        n_running_ += !closed_;
        return !closed_;
    }
    void end() {
        const std::lock_guard<std::mutex> lock(mutex_);
        --n_running_;
        ended_.notify_one();
    }
    // Nobody else may begin.
    void close() {
        const std::lock_guard<std::mutex> lock(mutex_);
        closed_ = true;
    }
    // Whether all threads that have begun have ended within a tenth of a second.
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
    bool closed_ = false;
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
    const auto team = std::make_shared<Team>();
    const auto drive = [&](int thread, const Poll& own) {
        for (std::int64_t chunk; !team->stopped() && (chunk = next.fetch_add(1)) < n_chunks;) {
            if (!body(chunk, thread, own)) team->stop();
            own.call(own.context);
        }
    };
    for (int thread = 1; thread < n_threads; ++thread) {
        // What is taken by reference is there until the call ends, which a thread that has begun holds up.
        const auto work = [team, &drive, thread] {
            if (!team->begin()) return;
            guarded(*team, [&] { drive(thread, {Team::check, team.get()}); });
            team->end();
        };
        try {
            std::thread(work).detach();
        } catch (...) {
            break;  // the system has no more threads, or no memory for one: those that run do all the work
        }
    }
    guarded(*team, [&] { drive(0, poll); });
    team->close();
    while (!team->wait()) guarded(*team, [&] { poll.call(poll.context); });
    team->rethrow();
}

}  // namespace quickmeans
