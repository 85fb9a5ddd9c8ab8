/// \file
/// Whether schedules agree, checked on the user's own work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/error.hpp>
#include <sluice/backend/stress.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace sluice {

/// What `verify_schedules` found.
struct ScheduleVerdict {
    /// Whether all runs gave the same bits.
    bool identical = true;
    /// The first difference in a sentence; empty if there is none.
    std::string difference{};
    /// The seed of the run that differs, where it was one under stress.
    std::optional<std::uint64_t> seed = std::nullopt;

    /// As `identical`.
    explicit operator bool() const noexcept { return identical; }
};

/// Runs the same work under each schedule and compares the results bit by bit with those of the first one.
///
/// `run(Schedule)` starts from the same state each time, runs the work, and returns its results as a
/// contiguous range of trivially copyable elements without padding, such as a `std::vector<float>` of losses
/// and weights; a view of them serves, since they are copied before the next run. Each schedule runs `repeats` times: a race shows
/// in some runs only. Throws what `run` throws, and `Error` where there is no schedule, not one repeat, one run alone, or no result
/// in any run: nothing would have been compared.
template <class Run>
ScheduleVerdict verify_schedules(Run&& run,
                                 std::initializer_list<Schedule> schedules = {Schedule::serial,
                                                                              Schedule::overlapped,
                                                                              Schedule::graphed},
                                 int repeats = 1);

/// Runs under stress.
struct StressRuns {
    Stress stress{}; ///< Of the first seed's runs. The others have the seeds that follow.
    int seeds = 4;   ///< How many, at least 1.
    std::size_t results_per_batch =
        0; ///< Of the results' elements, in the order of the batches; 0: not known.
};

/// Runs the work under the first schedule as it is, and then under each schedule with each seed of `runs`, and compares the
/// results bit by bit with those of the first run. The program must be compiled with `-DSLUICE_CHECKED=1`. So it shows what
/// kernels share unseen: see backend/stress.hpp. The verdict names the schedule, the seed, and the first result that differs,
/// with its batch where `results_per_batch` is given.
///
/// `run(Schedule)` as above; it makes its pipelines and sources anew each time.
/// \throws Error that names the schedule and the seed, with what `run` threw under stress nested in it; and where the runs
/// used no checked backend, or had no results. What the first run throws comes as it is.
template <class Run>
ScheduleVerdict verify_schedules(Run&& run, const StressRuns& runs,
                                 std::initializer_list<Schedule> schedules = {
                                     Schedule::serial, Schedule::overlapped, Schedule::graphed});

} // namespace sluice

#include <sluice/pipeline/detail/verify.inl>
