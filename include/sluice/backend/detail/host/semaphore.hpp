// A host semaphore: a counter that rises, which queues and threads wait for.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::host {

/// See `Semaphore`. Any thread may use it. It may be destroyed while queues still hold signals and waits.
class Semaphore {
public:
    /// Raises the counter when `queue` gets there, also if the queue has failed by then: waits for the value end,
    /// and fail as the queue has.
    void signal_on(Queue& queue, std::uint32_t value) {
        queue.push(Task{[state = state_, value, &queue] { state->raise(value, queue.failure()); }},
                   Queue::Policy::run_always);
    }

    /// Makes what is enqueued later on `queue` wait until the counter is at `value`.
    void wait_on(Queue& queue, std::uint32_t value) {
        queue.push(Task{[state = state_, value, &queue] { queue.fail(state->wait(value)); }},
                   Queue::Policy::run_always);
    }

    void signal(std::uint32_t value) {
        // A thread that sees the value may destroy the semaphore before this one is back.
        const detail::Shared<State> state = state_;
        state->raise(value, nullptr);
    }
    void give_up(std::uint32_t value) noexcept {
        const Error error("semaphore: a stream waits for the value " + std::to_string(value) +
                          ", which was not signalled");
        state_->raise(value, std::make_exception_ptr(error));
    }
    std::uint32_t value() const noexcept { return state_->value(); }
    void reset() { state_->reset(); }

private:
    // Shared with the tasks.
    class State {
    public:
        std::uint32_t value() const noexcept { return value_.load(std::memory_order_acquire); }
        void raise(std::uint32_t value, std::exception_ptr failure) {
            const std::lock_guard lock(mutex_);
            const std::uint32_t former = value_.load(std::memory_order_relaxed);
            if (detail::at_least(former, value))
                return;
            if (failure != nullptr) {
                if (failure_ == nullptr || failed_to_ != former) {
                    failed_from_ = former;
                    failure_ = std::move(failure);
                }
                failed_to_ = value;
            }
            value_.store(value, std::memory_order_release);
            changed_.notify_all();
        }
        // Waits for `value`, and gives what the queue that signalled it had failed with.
        std::exception_ptr wait(std::uint32_t value) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock,
                          [&] { return detail::at_least(value_.load(std::memory_order_relaxed), value); });
            const bool failed = failure_ != nullptr && !detail::at_least(failed_from_, value) &&
                                detail::at_least(failed_to_, value);
            return failed ? failure_ : nullptr;
        }
        void reset() {
            const std::lock_guard lock(mutex_);
            failure_ = nullptr;
            value_.store(0, std::memory_order_release);
        }

    private:
        mutable std::mutex mutex_;
        detail::Condition changed_;
        std::atomic<std::uint32_t> value_{0};
        // The latest values that failed queues raised the counter to: above the one, up to the other.
        std::uint32_t failed_from_ = 0;
        std::uint32_t failed_to_ = 0;
        std::exception_ptr failure_;
    };

    detail::Shared<State> state_ = detail::make_shared_value<State>();
};

} // namespace sluice::host
