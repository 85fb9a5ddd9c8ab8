// A source's lock and its worker threads, whose types their bodies alone know.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/config.hpp>
#include <sluice/graph/detail/call_ref.hpp>

namespace sluice::detail {

/// A mutex, and a condition that changes under it.
class SourceLock {
public:
    SourceLock();
    SourceLock& operator=(SourceLock&&) = delete;
    ~SourceLock();

    void lock();
    void unlock() noexcept;
    /// With the lock, which is given up meanwhile: returns once `until()` holds. `timeout_ms` above 0: returns false if it doesn't
    /// within that time.
    bool wait(CallRef<bool()> until, std::int64_t timeout_ms = 0);
    /// Has those that wait look again.
    void changed() noexcept;

private:
    struct State;
    State& state_;
};

/// Holds the lock as long as it lives, but between `unlock` and `lock`.
class SourceGuard {
public:
    explicit SourceGuard(SourceLock& of) : of_(of) { lock(); }
    SourceGuard& operator=(SourceGuard&&) = delete;
    ~SourceGuard() {
        if (held_)
            unlock();
    }
    void lock() {
        of_.lock();
        held_ = true;
    }
    void unlock() noexcept {
        held_ = false;
        of_.unlock();
    }

private:
    SourceLock& of_;
    bool held_ = false;
};

/// Threads that fill slots.
class SourceThreads {
public:
    SourceThreads();
    SourceThreads& operator=(SourceThreads&&) = delete;
    ~SourceThreads();

    /// One more, which calls `work(source, worker)`. Throws `std::system_error` where there can be none.
    void start(void (*work)(void* source, std::size_t worker), void* source, std::size_t worker);
    /// Waits for their ends.
    void join() noexcept;

private:
    struct State;
    State& state_;
};

} // namespace sluice::detail

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/pipeline/detail/source_threads.inl>
#endif
