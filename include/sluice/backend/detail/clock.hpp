/// \file
/// Clocks and durations of std::chrono. libstdc++ has them in a file of their own since GCC 12; <chrono> itself adds calendars, time
/// zones and their streams, a tenth of what including sluice takes.
#pragma once

#include <cstdint>
#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif

namespace sluice::detail {

/// Nanoseconds on the steady clock, since its epoch.
inline std::int64_t steady_nanoseconds() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

} // namespace sluice::detail
