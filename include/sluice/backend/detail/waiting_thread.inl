// Bodies of waiting_thread.hpp.
#pragma once

#include <thread>

#include <sluice/backend/detail/clock.hpp>
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
        std::this_thread::sleep_for(
            std::chrono::nanoseconds(timeout_ - waited < nap ? timeout_ - waited : nap));
    } else if (waited >= spins) {
        std::this_thread::yield();
    }
    return true;
}

} // namespace sluice::detail
