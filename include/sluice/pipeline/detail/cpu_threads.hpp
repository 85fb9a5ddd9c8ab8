/// \file
/// The threads of a CPU stage among stages of another backend.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <vector>

#include <sluice/backend/host.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// The first thing that went wrong on a pipeline's threads. Any thread may use it.
class ThreadFault {
public:
    bool known() const noexcept { return known_.load(std::memory_order_acquire); }

    void set(std::exception_ptr thrown, std::size_t stage, std::size_t batch) noexcept {
        const std::lock_guard lock(mutex_);
        if (known_.load(std::memory_order_relaxed))
            return;
        thrown_ = std::move(thrown);
        stage_ = stage;
        batch_ = batch;
        known_.store(true, std::memory_order_release);
    }
    void clear() noexcept {
        const std::lock_guard lock(mutex_);
        thrown_ = nullptr;
        known_.store(false, std::memory_order_release);
    }
    std::size_t stage() const noexcept { return stage_; }
    std::size_t batch() const noexcept { return batch_; }
    const std::exception_ptr& thrown() const noexcept { return thrown_; }

private:
    std::mutex mutex_;
    std::atomic<bool> known_{false};
    std::exception_ptr thrown_;
    std::size_t stage_ = 0;
    std::size_t batch_ = 0;
};

/// The threads of one CPU stage, which take batches in turns, each with a stream that runs what it is handed at once.
class CpuThreads {
public:
    void start(int count) {
        for (int thread = 0; thread < count; ++thread) {
            threads_.emplace_back();
            streams_.push_back(BasicStream<Host>::make_inline());
        }
    }
    std::size_t count() const noexcept { return threads_.size(); }
    BasicStreamRef<Host> thread_of(std::size_t batch) const noexcept {
        return threads_[batch % threads_.size()];
    }
    BasicStreamRef<Host> stream_of(std::size_t batch) const noexcept {
        return streams_[batch % streams_.size()];
    }
    /// Waits for all that the threads have been handed.
    void drain() const noexcept {
        for (const BasicStream<Host>& thread : threads_) {
            try {
                thread.sync();
            } catch (...) {
                // What a stage throws is kept as the pipeline's fault.
            }
        }
    }
    void clear_failures() const noexcept {
        for (const BasicStream<Host>& stream : streams_)
            Host::clear_failure(stream.get());
    }

private:
    std::vector<BasicStream<Host>> streams_; // Used by the threads, which end first.
    std::vector<BasicStream<Host>> threads_;
};

} // namespace sluice::detail
