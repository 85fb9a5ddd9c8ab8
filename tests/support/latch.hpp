// Holds a stream's work up until the test lets it go on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace sluice::test {

/// How long anything may take that should happen at once. Only a failing test waits so long.
inline constexpr std::chrono::seconds patience{60};

/// Work that passes the latch waits there until it is opened. Copies are the same latch, so that the work may
/// hold one.
class Latch {
public:
    /// Lets all threads pass, now and later.
    void open() const {
        {
            const std::lock_guard lock(state_->mutex);
            state_->open = true;
        }
        state_->changed.notify_all();
    }

    /// Waits for the latch to open. No wait is without end: a test that would hang goes on and fails.
    void pass() const {
        std::unique_lock lock(state_->mutex);
        state_->reached = true;
        state_->changed.notify_all();
        if (!state_->changed.wait_for(lock, patience, [this] { return state_->open; }))
            state_->timed_out = true;
    }

    /// Waits until a thread is at the latch; false if none came.
    bool wait_until_reached() const {
        std::unique_lock lock(state_->mutex);
        return state_->changed.wait_for(lock, patience, [this] { return state_->reached; });
    }

    /// Whether a thread has waited in vain.
    bool timed_out() const {
        const std::lock_guard lock(state_->mutex);
        return state_->timed_out;
    }

private:
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        bool open = false;
        bool reached = false;
        bool timed_out = false;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// A latch that opens at the end of the scope, so that a failed assertion leaves no stream waiting. Declare it
/// after the streams that it holds up.
class ScopedLatch : public Latch {
public:
    ScopedLatch() = default;
    ScopedLatch(const ScopedLatch&) = delete;
    ScopedLatch& operator=(const ScopedLatch&) = delete;
    ~ScopedLatch() { open(); }

    /// For the work to hold: unlike this one, it does not open the latch when it goes.
    Latch handle() const { return *this; }
};

/// Whether `condition()` becomes true soon.
template <class Condition>
bool eventually(Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

/// Gives what should not happen the time to happen.
inline void give_it_time() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

} // namespace sluice::test
