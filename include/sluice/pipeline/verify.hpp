/// \file
/// Whether schedules agree, checked on the user's own work.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>

#include <sluice/pipeline/schedule.hpp>

namespace sluice {

/// What `verify_schedules` found.
struct ScheduleVerdict {
    /// Whether all runs gave the same bits.
    bool identical = true;
    /// The first difference in a sentence; empty if there is none.
    std::string difference;

    /// As `identical`.
    explicit operator bool() const noexcept { return identical; }
};

/// Runs the same work under each schedule and compares the results bit by bit with those of the first one.
///
/// `run(Schedule)` starts from the same state each time, runs the work, and returns its results as a
/// contiguous range of trivially copyable elements without padding, such as a `std::vector<float>` of losses
/// and weights. Each schedule runs `repeats` times: a race shows in some runs only. Throws what `run` throws.
template <class Run>
ScheduleVerdict verify_schedules(Run&& run,
                                 std::initializer_list<Schedule> schedules = {Schedule::serial,
                                                                              Schedule::overlapped,
                                                                              Schedule::graphed},
                                 int repeats = 1);

} // namespace sluice

#include <sluice/pipeline/detail/verify.inl>
