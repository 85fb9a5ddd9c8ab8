// Bodies of waiting_thread.hpp.
#pragma once

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/backend/detail/waiting_thread.hpp>

namespace sluice::detail {

SLUICE_BODY WaitingThread::WaitingThread(std::int64_t timeout_ns) noexcept
    : begun_(steady_nanoseconds()), timeout_(timeout_ns) {}

SLUICE_BODY bool WaitingThread::goes_on() {
    constexpr std::int64_t spins = 20'000;
    constexpr std::int64_t yields = 2'000'000;
    constexpr std::int64_t nap = 50'000;
    const std::int64_t waited = steady_nanoseconds() - begun_;
    if (waited >= timeout_)
        return false;
    if (waited >= yields) {
        sleep_thread(timeout_ - waited < nap ? timeout_ - waited : nap);
    } else if (waited >= spins) {
        sched_yield();
    }
    return true;
}

} // namespace sluice::detail
