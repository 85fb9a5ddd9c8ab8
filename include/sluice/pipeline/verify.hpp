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
                                 int repeats = 1) {
    ScheduleVerdict verdict;
    if (schedules.size() == 0)
        return verdict;
    const auto expected = run(*schedules.begin());
    const std::span first(expected);
    using Element = typename decltype(first)::element_type;
    static_assert(std::is_trivially_copyable_v<Element>,
                  "sluice::verify_schedules: results must be trivially copyable");

    const auto differs = [&](Schedule schedule, const std::string& how) {
        verdict.identical = false;
        verdict.difference = std::string("schedule ") + to_string(schedule) + " differs from " +
                             to_string(*schedules.begin()) + ": " + how;
    };
    for (const Schedule schedule : schedules) {
        for (int repeat = 0; repeat < repeats && verdict.identical; ++repeat) {
            if (repeat == 0 && schedule == *schedules.begin())
                continue;
            const auto results = run(schedule);
            const std::span second(results);
            if (second.size() != first.size()) {
                differs(schedule, std::to_string(second.size()) + " results instead of " +
                                      std::to_string(first.size()));
                continue;
            }
            for (std::size_t index = 0; index < first.size(); ++index) {
                if (std::memcmp(&first[index], &second[index], sizeof(Element)) != 0) {
                    differs(schedule, "result " + std::to_string(index) + " of " +
                                          std::to_string(first.size()) + " is the first that has other bits");
                    break;
                }
            }
        }
    }
    return verdict;
}

} // namespace sluice
