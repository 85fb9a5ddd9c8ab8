// Threads that lend themselves to replays.
#pragma once

#include <cstddef>
#include <mutex>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/thread.hpp>

namespace sluice::host {

/// The program's spare threads. There are always as many as jobs run at the same time, so that no job waits for
/// another one to end; they stay, for the next ones. Any thread may use it.
class Workers {
public:
    /// Something to run. The caller that starts it keeps it until `finished` is called.
    struct Job {
        void (*run)(Job&) = nullptr;
        /// Called last, by the thread that ran the job and is as good as free again.
        void (*finished)(Job&) = nullptr;
        Job* next = nullptr;
    };

    /// Never destroyed: its threads end with the program.
    static Workers& instance() {
        static Workers& workers = *new Workers;
        return workers;
    }

    /// Makes threads for `count` jobs at once beforehand, so that the first ones need not wait for them.
    void prepare(std::size_t count) {
        const std::lock_guard lock(mutex_);
        (void)grow_to(count);
    }

    /// Starts `count` jobs, linked by `next`. False, and none is started, where there can be no more threads.
    bool start(Job* first, std::size_t count) {
        {
            const std::lock_guard lock(mutex_);
            if (!grow_to(busy_ + count))
                return false;
            busy_ += count;
            *last_ = first;
            while (*last_ != nullptr)
                last_ = &(*last_)->next;
        }
        if (count == 1) {
            changed_.notify_one();
        } else {
            changed_.notify_all();
        }
        return true;
    }

private:
    Workers() = default;

    bool grow_to(std::size_t count) {
        try {
            for (; threads_ < count; ++threads_)
                detail::Thread([this] { work(); }).detach();
        } catch (...) {
            return false;
        }
        return true;
    }

    [[noreturn]] void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return first_ != nullptr; });
            Job& job = *first_;
            first_ = job.next;
            if (first_ == nullptr)
                last_ = &first_;
            job.next = nullptr;
            lock.unlock();
            job.run(job);
            // Before another thread can know that the job is over: the next one then needs no new thread.
            lock.lock();
            --busy_;
            lock.unlock();
            job.finished(job);
            lock.lock();
        }
    }

    std::mutex mutex_;
    detail::Condition changed_;
    Job* first_ = nullptr;
    Job** last_ = &first_; // the link that the next job goes to
    std::size_t threads_ = 0;
    std::size_t busy_ = 0; // jobs that are waiting or running
};

} // namespace sluice::host
