/// \file
/// A host event: a counter of records made, and of records reached.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <sluice/backend/host/queue.hpp>

namespace sluice::host {

/// A point in a queue that others can wait for. Recorded again, it stands for the later point; who waits
/// already keeps waiting for the earlier one, as with CUDA's events. Any thread may use it.
class Event {
public:
    Event(const EventOptions& options, int device)
        : state_(std::make_shared<State>()), timing_(options.timing), device_(device) {}

    /// Marks this point of `queue`.
    void record(Queue& queue) {
        queue.push(Task{[state = state_, number = state_->begin_record(), &queue] {
                       state->reach(number, queue.failure());
                   }},
                   Queue::Policy::run_always);
    }

    /// Makes what is enqueued later on `queue` wait for the latest record made so far; for nothing if there
    /// is none.
    void wait_on(Queue& queue) const {
        const std::size_t number = state_->latest_record();
        if (number == 0)
            return;
        queue.push(Task{[state = state_, number] { state->wait(number); }}, Queue::Policy::run_always);
    }

    /// Waits on the calling thread for the latest record made so far.
    void wait() const { state_->wait(state_->latest_record()); }

    /// Whether a record has been made.
    bool recorded() const { return state_->latest_record() != 0; }

    /// Whether the latest record made so far has been reached.
    bool done() const { return state_->done(); }

    /// What the recording queue had failed with when a record was last reached; null if it had not.
    std::exception_ptr failure() const { return state_->failure(); }

    /// Whether the event was made to note the time.
    bool timing() const noexcept { return timing_; }

    /// The device that was current when the event was made.
    int device() const noexcept { return device_; }

    /// Nanoseconds of the steady clock at which a record was last reached.
    std::int64_t reached_at() const { return state_->reached_at(); }

private:
    // Shared with the tasks, so that an event may be destroyed while queues still hold its records.
    class State {
    public:
        // Reaching a record allocates nothing then, unless many queues are far ahead of each other.
        State() { ahead_.reserve(32); }

        std::size_t begin_record() {
            const std::lock_guard lock(mutex_);
            return ++recorded_;
        }
        std::size_t latest_record() const {
            const std::lock_guard lock(mutex_);
            return recorded_;
        }
        bool done() const {
            const std::lock_guard lock(mutex_);
            return has_reached(recorded_);
        }
        std::int64_t reached_at() const {
            const std::lock_guard lock(mutex_);
            return nanoseconds_;
        }
        std::exception_ptr failure() const {
            const std::lock_guard lock(mutex_);
            return failure_;
        }
        void reach(std::size_t number, std::exception_ptr failure) {
            const std::lock_guard lock(mutex_);
            if (number > newest_) {
                newest_ = number;
                failure_ = std::move(failure);
                nanoseconds_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count();
            }
            // Recorded on several queues, records are reached in any order.
            ahead_.push_back(number);
            while (take_ahead(reached_ + 1))
                ++reached_;
            changed_.notify_all();
        }
        void wait(std::size_t number) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this, number] { return has_reached(number); });
        }

    private:
        bool has_reached(std::size_t number) const {
            if (number <= reached_)
                return true;
            for (const std::size_t ahead : ahead_) {
                if (ahead == number)
                    return true;
            }
            return false;
        }
        // Whether record `number` is among those reached before their turn; if so, forgets it.
        bool take_ahead(std::size_t number) {
            for (std::size_t& waiting : ahead_) {
                if (waiting != number)
                    continue;
                waiting = ahead_.back();
                ahead_.pop_back();
                return true;
            }
            return false;
        }

        mutable std::mutex mutex_;
        std::condition_variable changed_;
        std::size_t recorded_ = 0;
        std::size_t reached_ = 0;        // All records up to this one have been reached,
        std::vector<std::size_t> ahead_; // and these.
        std::size_t newest_ = 0;         // The latest of all of them, of which the next two tell.
        std::int64_t nanoseconds_ = 0;
        std::exception_ptr failure_;
    };

    std::shared_ptr<State> state_;
    bool timing_;
    int device_;
};

} // namespace sluice::host
