/// \file
/// Clocks and durations of std::chrono. The functions that these two headers declare take them, so they bring them along;
/// <chrono> itself adds calendars, time zones and their streams, a tenth of what including sluice takes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <thread>

namespace sluice::detail {

/// Nanoseconds on the steady clock, since its epoch.
inline std::int64_t steady_nanoseconds() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace sluice::detail
