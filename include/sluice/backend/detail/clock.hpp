// Clocks and durations of std::chrono. libstdc++ has them in a file of their own since GCC 12; <chrono> itself adds calendars, time
// zones and their streams, a tenth of what including sluice takes.
#pragma once

#include <cstdint>
#include <ctime>
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

/// Nanoseconds of CPU time that the calling thread has used so far; 0 where that is unknown.
inline std::int64_t thread_nanoseconds() noexcept {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    std::timespec time{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0)
        return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
#endif
    return 0;
}

} // namespace sluice::detail
