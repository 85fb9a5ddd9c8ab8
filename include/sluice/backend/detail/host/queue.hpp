// A host stream: it runs what it is handed, in order, on a thread of its own or on the caller's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

class Capture;
class Queue;

/// How many captures are under way in this program. While it is 0, no queue is being captured: one look at it
/// is all that graphs cost a program that does not use them.
inline std::atomic<int> captures_under_way{0};

/// Says, for the length of a scope, that the calling thread runs a task of a queue.
class Running {
public:
    explicit Running(const Queue& queue) noexcept : queue_(&queue), outer_(innermost()) {
        innermost() = this;
    }
    Running& operator=(Running&&) = delete;
    ~Running() { innermost() = outer_; }

    /// Whether the calling thread runs a task of any queue.
    static bool any() noexcept { return innermost() != nullptr; }

    /// Whether the calling thread runs a task of `queue`: to wait for that queue would be to wait for itself.
    static bool of(const Queue& queue) noexcept {
        for (const Running* running = innermost(); running != nullptr; running = running->outer_) {
            if (running->queue_ == &queue)
                return true;
        }
        return false;
    }

private:
    static const Running*& innermost() noexcept {
        thread_local const Running* running = nullptr;
        return running;
    }

    const Queue* queue_;
    const Running* outer_;
};

/// Runs tasks one after another. As on a device, the enqueuing thread does not wait for them, except for room: see `capacity`.
///
/// A task that throws fails the queue: later tasks are skipped, but for those that others wait for, until
/// `clear_failure`. Any thread may enqueue; tasks of one thread keep their order.
class Queue {
public:
    /// Tasks that may be outstanding before the enqueuing thread waits, about as many launches as a CUDA stream takes.
    /// It waits no longer than `patience`: where no task ends within it, the queue takes as many again, and a task that
    /// enqueues, on its own or on another queue, never waits.
    static constexpr std::size_t capacity = 1024;
    static constexpr std::chrono::milliseconds patience{100};

    /// Whether a task still runs after an earlier one has failed.
    enum class Policy { skip_after_failure, run_always };

    /// Which thread runs the tasks.
    enum class Runs {
        on_own_thread,
        /// The enqueuing thread runs a task at once. What a task enqueues runs right after that task; what other
        /// threads enqueue meanwhile, too, and they do not wait for it.
        on_caller,
    };

    Queue(const StreamOptions& options, int device, Runs on = Runs::on_own_thread)
        : options_(options), device_(device), runs_(on) {
        // One block more than the tasks need: the one that they begin in and the one that they end in are never the
        // same one come round.
        const std::size_t blocks = on == Runs::on_own_thread ? capacity / Block::size + 1 : 1;
        for (std::size_t i = 0; i < blocks; ++i)
            add_block();
        head_.block = tail_.block;
        if (on == Runs::on_own_thread)
            worker_ = detail::Thread([this] { work(); });
    }

    Queue& operator=(Queue&&) = delete;

    /// Runs what is still enqueued, then deletes the queue. Called by one of the queue's own tasks, it returns at
    /// once, and the queue goes after its last task.
    static void destroy(Queue* queue) noexcept {
        if (Running::of(*queue)) {
            // Only the thread that runs its tasks, this one, looks at these two.
            queue->stopping_ = true;
            queue->deletes_itself_ = true;
            if (queue->worker_.joinable())
                queue->worker_.detach();
            return;
        }
        delete queue;
    }

    /// Enqueues `task`.
    void push(Task task, Policy policy = Policy::skip_after_failure) {
        std::unique_lock lock(mutex_);
        if (enqueued_ - finished_ >= limit_) [[unlikely]]
            make_room(lock);
        append(std::move(task), policy);
        if (runs_ == Runs::on_caller) {
            if (!running_)
                run_on_caller(lock);
            return;
        }
        // The task may be the one that deletes this: see work().
        notifying_.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        changed_.notify_all();
        notifying_.fetch_sub(1, std::memory_order_release);
    }

    /// Waits until everything enqueued so far has run or been skipped. Throws `Error` in a task of this queue.
    void drain() {
        if (Running::of(*this)) {
            throw Error("sync: a task cannot wait for the stream that runs it; wait on another thread, or "
                        "enqueue what comes next");
        }
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

    /// Makes the queue fail as a task that throws does, unless it has failed already.
    void fail(std::exception_ptr failure) {
        const std::lock_guard lock(mutex_);
        keep_failure(std::move(failure));
    }

    /// Forgets the failure; tasks run again.
    void clear_failure() {
        std::exception_ptr former; // goes after the lock
        const std::lock_guard lock(mutex_);
        former.swap(failure_);
        failed_.store(false, std::memory_order_release);
    }

    /// The capture that what is handed to this queue goes to, instead of being run; null if there is none. The
    /// queue itself does not act on it: the enqueuing code asks first.
    detail::Shared<Capture> capture() const {
        if (captures_under_way.load(std::memory_order_relaxed) == 0)
            return nullptr;
        const std::lock_guard lock(mutex_);
        return capture_;
    }
    void set_capture(detail::Shared<Capture> capture) {
        const std::lock_guard lock(mutex_);
        std::swap(capture_, capture);
    }

    const StreamOptions& options() const noexcept { return options_; }
    int device() const noexcept { return device_; }
    bool runs_on_caller() const noexcept { return runs_ == Runs::on_caller; }

private:
    struct Entry {
        Task task;
        Policy policy = Policy::skip_after_failure;
    };
    // Blocks stand in a circle. Entries never move, so that one can run while others are added.
    struct Block {
        static constexpr std::size_t size = 256;
        std::array<Entry, size> entries;
        Block* next = nullptr;
    };
    // The entry at `index`, or the first one of the next block if the block has none left.
    struct Position {
        Block* block = nullptr;
        std::size_t index = 0;
    };

    ~Queue() {
        std::unique_lock lock(mutex_);
        stopping_ = true;
        if (runs_ == Runs::on_caller)
            changed_.wait(lock, [this] { return !running_; });
        lock.unlock();
        changed_.notify_all();
        if (worker_.joinable())
            worker_.join();
    }

    // Behind the tail's block.
    void add_block() {
        blocks_.reserve(blocks_.size() + 1);
        auto block = detail::make_owned<Block>();
        block->next = tail_.block == nullptr ? block.get() : tail_.block->next;
        if (tail_.block == nullptr)
            tail_.block = block.get();
        else
            tail_.block->next = block.get();
        blocks_.push_back(std::move(block));
    }
    void append(Task task, Policy policy) {
        if (tail_.index == Block::size) {
            if (enqueued_ == finished_) { // the block, which is the head's, too, can be used again
                head_.index = 0;
            } else {
                if (tail_.block->next == head_.block)
                    add_block();
                tail_.block = tail_.block->next;
            }
            tail_.index = 0;
        }
        Entry& entry = tail_.block->entries[tail_.index++];
        entry.task = std::move(task);
        entry.policy = policy;
        ++enqueued_;
    }
    // The task that waits may be one that another task, or this very thread, must let go on.
    void make_room(std::unique_lock<std::mutex>& lock) {
        while (enqueued_ - finished_ >= limit_) {
            const std::size_t before = finished_;
            if (runs_ == Runs::on_own_thread && !Running::any() &&
                changed_.wait_for(lock, patience, [&] { return finished_ != before; }))
                continue;
            for (std::size_t i = 0; i < capacity / Block::size; ++i)
                add_block();
            limit_ += capacity;
        }
    }
    void keep_failure(std::exception_ptr failure) {
        if (failure == nullptr || failure_ != nullptr)
            return;
        failure_ = std::move(failure);
        failed_.store(true, std::memory_order_release);
    }

    // Runs the next task, or skips it. There must be one.
    void run_next(std::unique_lock<std::mutex>& lock) {
        if (head_.index == Block::size)
            head_ = {head_.block->next, 0};
        Entry& entry = head_.block->entries[head_.index];
        const bool runs = failure_ == nullptr || entry.policy == Policy::run_always;
        lock.unlock();
        // The entry is this thread's alone until it is counted as finished.
        std::exception_ptr thrown;
        {
            const Running running(*this);
            try {
                if (runs)
                    entry.task();
            } catch (...) {
                thrown = std::current_exception();
            }
            entry.task = Task{};
        }
        lock.lock();
        keep_failure(std::move(thrown));
        ++head_.index;
        ++finished_;
        changed_.notify_all();
    }
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return stopping_ || finished_ < enqueued_; });
            if (finished_ == enqueued_)
                break;
            run_next(lock);
        }
        if (!deletes_itself_)
            return;
        lock.unlock();
        // A thread that has enqueued the last task may not be back from telling of it.
        while (notifying_.load(std::memory_order_acquire) != 0)
            detail::sleep_thread(1000);
        delete this;
    }
    void run_on_caller(std::unique_lock<std::mutex>& lock) {
        running_ = true;
        while (finished_ < enqueued_)
            run_next(lock);
        // A thread that waits for it has been woken by the last task's end, under the same lock.
        running_ = false;
        if (!deletes_itself_)
            return;
        lock.unlock();
        delete this;
    }

    StreamOptions options_;
    int device_;
    Runs runs_;
    mutable std::mutex mutex_;
    detail::Condition changed_;
    detail::List<detail::Owned<Block>> blocks_;
    Position head_; // of the oldest task that is not finished
    Position tail_; // of the next one to be enqueued
    std::size_t enqueued_ = 0;
    std::size_t finished_ = 0;
    std::size_t limit_ = capacity;
    bool running_ = false; // only of queues that run on their callers
    bool stopping_ = false;
    bool deletes_itself_ = false;
    std::atomic<int> notifying_{0}; // threads that have enqueued a task, and are telling of it
    detail::Shared<Capture> capture_;
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false};
    detail::Thread worker_;
};

} // namespace sluice::host
