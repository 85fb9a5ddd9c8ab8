// A host event: a counter of records made, and of records reached.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/host/capture.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::host {

/// A point in a queue that others can wait for. Recorded again, it stands for the later point; a stream that waits
/// already keeps waiting for the earlier one, as with CUDA's events. Any thread may use it.
///
/// Recorded on a queue that is being captured, it stands for a point of the capture instead, until it is recorded
/// again: queues that wait for it join the capture, and no thread can wait for it.
class Event {
public:
    Event(const EventOptions& options, int device)
        : state_(detail::make_shared_value<State>()), timing_(options.timing), device_(device) {}

    /// Marks this point of `queue`. Throws `Error` if the queue's capture is invalid.
    void record(Queue& queue) {
        if (const auto capture = queue.capture(); capture != nullptr) [[unlikely]] {
            state_->mark(capture, capture->last_of(queue));
            return;
        }
        queue.push(Task{[state = state_, number = state_->begin_record(queue), &queue] {
                       state->reach(number, queue.failure());
                   }},
                   Queue::Policy::run_always);
    }

    /// Makes what is enqueued later on `queue` wait for the latest record made so far; for nothing if there
    /// is none. If the recording queue had failed by then, `queue` fails with the same: what comes later must not
    /// go on with what was not written. Throws `Error` if one of event and queue is part of a capture and the other of
    /// another one, or of none; a queue that is not being captured joins the event's capture instead.
    void wait_on(Queue& queue) const {
        if (captures_under_way.load(std::memory_order_relaxed) != 0 || state_->captured()) [[unlikely]] {
            if (wait_in_capture(queue))
                return;
        }
        const std::size_t number = state_->begin_wait();
        if (number == 0)
            return;
        queue.push(Task{[state = state_, number, &queue] { queue.fail(state->end_wait(number)); }},
                   Queue::Policy::run_always);
    }

    /// Waits on the calling thread for the latest record made so far. Throws `Error`, as `is_done` does, if that
    /// was captured; also in a task that the record comes after.
    void wait() const {
        require_not_captured("waiting for an event");
        state_->wait_for_latest();
    }

    /// What records the event in each run of a graph: made and reached at once, with no thread behind it.
    Task mark_of_replays() const {
        return Task{[state = state_] { state->reach_now(); }};
    }

    /// Whether a record has been made.
    bool recorded() const { return state_->latest_record() != 0; }

    /// Whether the latest record made so far has been reached.
    bool is_done() const {
        require_not_captured("asking whether an event is done");
        return state_->is_done();
    }

    /// Whether the latest record was captured.
    bool captured() const { return state_->captured(); }

    /// What the recording queue had failed with when a record was last reached; null if it had not.
    std::exception_ptr failure() const { return state_->failure(); }

    /// Whether the event was made to note the time.
    bool timing() const noexcept { return timing_; }

    /// The device that was current when the event was made.
    int device() const noexcept { return device_; }

    /// Nanoseconds of the steady clock at which a record was last reached.
    std::int64_t reached_at() const { return state_->reached_at(); }

private:
    // The nodes behind which a record stands in a capture.
    struct CapturePoint {
        detail::Shared<Capture> capture; // null for none
        detail::List<std::size_t> nodes;
    };

    // Shared with the tasks, so that an event may be destroyed while queues still hold its records.
    class State {
    public:
        // Reaching a record allocates nothing then, unless many queues are far ahead of each other.
        State() { ahead_.reserve(32); }

        std::size_t begin_record(const Queue& queue) {
            const std::lock_guard lock(mutex_);
            recorder_ = &queue;
            if (captured_.load(std::memory_order_relaxed)) [[unlikely]] {
                captured_.store(false, std::memory_order_relaxed);
                point_ = {};
            }
            return ++recorded_;
        }
        std::size_t latest_record() const {
            const std::lock_guard lock(mutex_);
            return recorded_;
        }
        bool is_done() const {
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
        void mark(detail::Shared<Capture> capture, detail::List<std::size_t> nodes) {
            CapturePoint point{std::move(capture), std::move(nodes)};
            const std::lock_guard lock(mutex_);
            std::swap(point_, point);
            captured_.store(true, std::memory_order_relaxed);
        }
        bool captured() const noexcept { return captured_.load(std::memory_order_relaxed); }
        CapturePoint point() const {
            const std::lock_guard lock(mutex_);
            return point_;
        }
        void reach(std::size_t number, std::exception_ptr failure) {
            const std::lock_guard lock(mutex_);
            reach_locked(number, std::move(failure));
        }
        void reach_now() {
            const std::lock_guard lock(mutex_);
            captured_.store(false, std::memory_order_relaxed);
            point_ = {};
            reach_locked(++recorded_, nullptr);
        }
        void wait_for_latest() {
            std::unique_lock lock(mutex_);
            const std::size_t number = recorded_;
            if (has_reached(number))
                return;
            if (Running::of(*recorder_)) {
                throw Error("sync: a task cannot wait for an event that is recorded behind it on the stream "
                            "that runs it");
            }
            changed_.wait(lock, [this, number] { return has_reached(number); });
        }
        // The latest record, which `end_wait` must be called for; 0 if there is none.
        std::size_t begin_wait() {
            const std::lock_guard lock(mutex_);
            if (recorded_ != 0)
                ++waits_;
            return recorded_;
        }
        // Waits for record `number`, and gives what its queue had failed with.
        std::exception_ptr end_wait(std::size_t number) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this, number] { return has_reached(number); });
            std::exception_ptr failure;
            if (number == newest_)
                failure = failure_;
            for (const OlderFailure& older : older_failures_) {
                if (older.number == number)
                    failure = older.failure;
            }
            if (--waits_ == 0)
                older_failures_.clear();
            return failure;
        }

    private:
        void reach_locked(std::size_t number, std::exception_ptr failure) {
            if (number > newest_) {
                // Queues may still be about to wait for the former record.
                if (failure_ != nullptr && waits_ > 0)
                    older_failures_.push_back({newest_, std::move(failure_)});
                newest_ = number;
                failure_ = std::move(failure);
                nanoseconds_ = detail::steady_nanoseconds();
            } else if (failure != nullptr && waits_ > 0) {
                older_failures_.push_back({number, std::move(failure)});
            }
            // Recorded on several queues, records are reached in any order.
            ahead_.push_back(number);
            while (take_ahead(reached_ + 1))
                ++reached_;
            changed_.notify_all();
        }

        struct OlderFailure {
            std::size_t number;
            std::exception_ptr failure;
        };

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
        detail::Condition changed_;
        std::size_t recorded_ = 0;
        std::size_t reached_ = 0;         // All records up to this one have been reached,
        detail::List<std::size_t> ahead_; // and these.
        std::size_t newest_ = 0;          // The latest of all of them, of which the next two tell.
        std::int64_t nanoseconds_ = 0;
        std::exception_ptr failure_;
        std::size_t waits_ = 0;                     // enqueued and not over
        detail::List<OlderFailure> older_failures_; // of records before the newest, while there are waits
        const Queue* recorder_ = nullptr;           // of the latest record; only compared with
        CapturePoint point_;                        // of the latest record
        std::atomic<bool> captured_{false};
    };

    // Whether the wait became part of a capture.
    bool wait_in_capture(Queue& queue) const {
        const detail::Shared<Capture> mine = queue.capture();
        const CapturePoint point = state_->point();
        if (point.capture == nullptr) {
            if (mine != nullptr && recorded()) {
                mine->refuse("wait: the stream is being captured and the event was recorded outside of the "
                             "capture; record it within, or wait before the capture begins");
            }
            return mine != nullptr;
        }
        if (mine != nullptr && mine.get() != point.capture.get()) {
            const char* const reason = "wait: the event belongs to another capture than the stream";
            point.capture->invalidate(reason);
            mine->refuse(reason);
        }
        point.capture->join(queue, point.nodes);
        return true;
    }
    void require_not_captured(const char* what) const {
        if (!state_->captured()) [[likely]]
            return;
        const std::string reason = std::string(what) + " whose latest record was captured is not possible";
        if (const auto capture = state_->point().capture; capture != nullptr)
            capture->refuse(reason);
    }

    detail::Shared<State> state_;
    bool timing_;
    int device_;
};

} // namespace sluice::host
