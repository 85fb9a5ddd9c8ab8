/// \file
/// A host stream: a thread that runs what it is handed, in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <sluice/backend/host/task.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

class Capture;

/// How many captures are under way in this program. While it is 0, no queue is being captured: one look at it
/// is all that graphs cost whoever does not use them.
inline std::atomic<int> captures_under_way{0};

/// Runs tasks one after another on a thread of its own. As on a device, whoever enqueues does not wait for
/// them, except when `capacity` tasks are outstanding already.
///
/// A task that throws fails the queue: later tasks are skipped, but for those that others wait for, until
/// `clear_failure`. Any thread may enqueue; tasks of one thread keep their order.
class Queue {
public:
    /// Tasks that may be outstanding, about as many launches as a CUDA stream takes before it blocks.
    static constexpr std::size_t capacity = 1024;

    /// Whether a task still runs after an earlier one has failed.
    enum class Policy { skip_after_failure, run_always };

    Queue(const StreamOptions& options, int device)
        : options_(options), device_(device), ring_(std::make_unique<Entry[]>(capacity)),
          worker_([this] { work(); }) {}

    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    /// Runs what is still enqueued, then ends the thread.
    ~Queue() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }

    /// Enqueues `task`.
    void push(Task task, Policy policy = Policy::skip_after_failure) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return enqueued_ - finished_ < capacity; });
            Entry& entry = ring_[enqueued_ % capacity];
            entry.task = std::move(task);
            entry.policy = policy;
            ++enqueued_;
        }
        changed_.notify_all();
    }

    /// Waits until everything enqueued so far has run or been skipped.
    void drain() {
        std::unique_lock lock(mutex_);
        const std::size_t goal = enqueued_;
        changed_.wait(lock, [this, goal] { return finished_ >= goal; });
    }

    /// Whether everything enqueued so far has run or been skipped.
    bool idle() const {
        const std::lock_guard lock(mutex_);
        return finished_ == enqueued_;
    }

    /// What the first failed task threw; null while none has. Cheap enough to ask at every step.
    std::exception_ptr failure() const {
        if (!failed_.load(std::memory_order_acquire))
            return nullptr;
        const std::lock_guard lock(mutex_);
        return failure_;
    }

    /// Forgets the failure; tasks run again.
    void clear_failure() {
        const std::lock_guard lock(mutex_);
        failure_ = nullptr;
        failed_.store(false, std::memory_order_release);
    }

    /// The capture that what is handed to this queue goes to, instead of being run; null if there is none. The
    /// queue itself does not act on it: whoever enqueues asks first.
    std::shared_ptr<Capture> capture() const {
        if (captures_under_way.load(std::memory_order_relaxed) == 0)
            return nullptr;
        const std::lock_guard lock(mutex_);
        return capture_;
    }
    void set_capture(std::shared_ptr<Capture> capture) {
        const std::lock_guard lock(mutex_);
        capture_.swap(capture);
    }

    const StreamOptions& options() const noexcept { return options_; }
    int device() const noexcept { return device_; }

private:
    struct Entry {
        Task task;
        Policy policy = Policy::skip_after_failure;
    };

    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return stopping_ || finished_ < enqueued_; });
            if (finished_ == enqueued_)
                return;
            Entry& entry = ring_[finished_ % capacity];
            const bool runs = failure_ == nullptr || entry.policy == Policy::run_always;
            lock.unlock();
            // The entry is the worker's alone until it is counted as finished.
            std::exception_ptr thrown;
            try {
                if (runs)
                    entry.task();
            } catch (...) {
                thrown = std::current_exception();
            }
            entry.task = Task{};
            lock.lock();
            if (thrown != nullptr && failure_ == nullptr) {
                failure_ = std::move(thrown);
                failed_.store(true, std::memory_order_release);
            }
            ++finished_;
            changed_.notify_all();
        }
    }

    StreamOptions options_;
    int device_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::unique_ptr<Entry[]> ring_;
    std::size_t enqueued_ = 0;
    std::size_t finished_ = 0;
    bool stopping_ = false;
    std::shared_ptr<Capture> capture_;
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false};
    std::thread worker_;
};

} // namespace sluice::host
