/// \file
/// Clocks and durations of std::chrono. The functions that <mutex> declares take them, so it brings them along; <chrono> itself
/// adds calendars, time zones and their streams, a tenth of what including sluice takes.
#pragma once

#include <cstdint>
#include <mutex>

namespace sluice::detail {

/// Nanoseconds on the steady clock, since its epoch.
inline std::int64_t steady_nanoseconds() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace sluice::detail
