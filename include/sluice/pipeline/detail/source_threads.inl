// Bodies of source_threads.hpp.
#pragma once

#include <mutex>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/pipeline/detail/source_threads.hpp>

namespace sluice::detail {

struct SourceLock::State {
    std::mutex mutex;
    Condition changed;
};

SLUICE_BODY SourceLock::SourceLock() : state_(*new State) {}

SLUICE_BODY SourceLock::~SourceLock() { delete &state_; }

SLUICE_BODY void SourceLock::lock() { state_.mutex.lock(); }

SLUICE_BODY void SourceLock::unlock() noexcept { state_.mutex.unlock(); }

SLUICE_BODY bool SourceLock::wait(CallRef<bool()> until, std::int64_t timeout_ms) {
    std::unique_lock lock(state_.mutex, std::adopt_lock);
    bool holds = true;
    if (timeout_ms > 0) {
        holds = state_.changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), until);
    } else {
        state_.changed.wait(lock, until);
    }
    (void)lock.release();
    return holds;
}

SLUICE_BODY void SourceLock::changed() noexcept { state_.changed.notify_all(); }

struct SourceThreads::State {
    List<Thread> threads;
};

SLUICE_BODY SourceThreads::SourceThreads() : state_(*new State) {}

SLUICE_BODY SourceThreads::~SourceThreads() { delete &state_; }

SLUICE_BODY void SourceThreads::start(void (*work)(void* source, std::size_t worker), void* source,
                                      std::size_t worker) {
    state_.threads.reserve(state_.threads.size() + 1);
    state_.threads.push_back(Thread([=] { work(source, worker); }));
}

SLUICE_BODY void SourceThreads::join() noexcept {
    for (Thread& thread : state_.threads)
        thread.join();
    state_.threads.clear();
}

} // namespace sluice::detail
