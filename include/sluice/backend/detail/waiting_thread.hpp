// How a thread waits for a value at which it has to look.
#pragma once

#include <cstdint>

#include <sluice/backend/config.hpp>

namespace sluice::detail {

/// Tells the CPU that the thread only looks at a value again and again.
inline void spin_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

/// A thread that waits, from its making on: without a pause for the first 20 microseconds, letting other threads run up to 2,000,
/// and sleeping for 50 at a time from then on.
class WaitingThread {
public:
    explicit WaitingThread(std::int64_t timeout_ns) noexcept;
    /// Lets time pass after some looks; false: the timeout is over.
    bool goes_on();

private:
    std::int64_t begun_;
    std::int64_t timeout_;
};

} // namespace sluice::detail

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/backend/detail/waiting_thread.inl>
#endif
