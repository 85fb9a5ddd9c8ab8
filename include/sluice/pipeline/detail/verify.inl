// Bodies of verify.hpp.
#pragma once

namespace sluice {

namespace detail {

/// Whether a value's bits are those of poisoned memory, or came of them: NaN.
template <class Element>
bool looks_poisoned(const Element& element) {
    if constexpr (std::is_floating_point_v<Element>) {
        return element != element;
    } else {
        unsigned char bytes[sizeof(Element)];
        std::memcpy(bytes, &element, sizeof(Element));
        for (const unsigned char byte : bytes) {
            if (byte != 0xFFU)
                return false;
        }
        return true;
    }
}

/// The first schedule has to be there: without results to compare with, nothing would be verified.
inline Schedule first_of(std::initializer_list<Schedule> schedules) {
    if (schedules.size() == 0)
        throw Error("verify_schedules: there is no schedule to run; expected one at least");
    for (const Schedule schedule : schedules)
        require_named("verify_schedules: the schedule", schedule, Schedule::automatic,
                      "serial, overlapped, graphed or automatic");
    return *schedules.begin();
}

/// Whether the work is run so that results can be compared.
template <class Run>
concept RunsWork =
    std::is_invocable_v<Run&, Schedule> && !std::is_void_v<std::invoke_result_t<Run&, Schedule>>;

/// Says how `second` differs from `first`; empty where it does not.
template <class Element, std::size_t Extent, class Results>
std::string difference_of(std::span<Element, Extent> first, const Results& results, std::size_t per_batch) {
    static_assert(std::is_trivially_copyable_v<Element>,
                  "sluice::verify_schedules: results must be trivially copyable");
    const std::span second(results);
    if (second.size() != first.size())
        return std::to_string(second.size()) + " results instead of " + std::to_string(first.size());
    for (std::size_t index = 0; index < first.size(); ++index) {
        if (std::memcmp(&first[index], &second[index], sizeof(Element)) == 0)
            continue;
        std::string text = "result " + std::to_string(index) + " of " + std::to_string(first.size());
        if (per_batch > 0)
            text += ", of batch " + std::to_string(index / per_batch) + ",";
        text += " is the first that has other bits";
        if (looks_poisoned(second[index]) && !looks_poisoned(first[index]))
            text += ": those of a poisoned slot, which was read before it was written or after it was handed "
                    "back";
        return text;
    }
    return {};
}

} // namespace detail

template <class Run>
ScheduleVerdict verify_schedules(Run&& run, std::initializer_list<Schedule> schedules, int repeats) {
    static_assert(
        detail::RunsWork<Run>,
        "sluice::verify_schedules: what runs the work must be callable as run(Schedule), and return "
        "its results as a contiguous range, such as a std::vector<float>");
    detail::require_callable("verify_schedules: what runs the work", run);
    const Schedule first = detail::first_of(schedules);
    if (repeats < 1)
        throw Error("verify_schedules: the repeats must be 1 or more, got " + std::to_string(repeats));
    ScheduleVerdict verdict;
    const auto expected = run(first);
    for (const Schedule schedule : schedules) {
        for (int repeat = 0; repeat < repeats && verdict.identical; ++repeat) {
            if (repeat == 0 && schedule == *schedules.begin())
                continue;
            const std::string how = detail::difference_of(std::span(expected), run(schedule), 0);
            if (how.empty())
                continue;
            verdict.identical = false;
            verdict.difference = std::string("schedule ") + to_string(schedule) + " differs from " +
                                 to_string(*schedules.begin()) + ": " + how;
        }
    }
    return verdict;
}

template <class Run>
ScheduleVerdict verify_schedules(Run&& run, const StressRuns& runs,
                                 std::initializer_list<Schedule> schedules) {
    static_assert(
        detail::RunsWork<Run>,
        "sluice::verify_schedules: what runs the work must be callable as run(Schedule), and return "
        "its results as a contiguous range, such as a std::vector<float>");
    detail::require_callable("verify_schedules: what runs the work", run);
    if (runs.seeds < 1)
        throw Error("StressRuns::seeds must be 1 or more, got " + std::to_string(runs.seeds));
    const auto expected = run(detail::first_of(schedules));
    const std::uint64_t before = StressScope::counts().operations;
    Stress stress = runs.stress;
    for (int seed = 0; seed < runs.seeds; ++seed, ++stress.seed) {
        for (const Schedule schedule : schedules) {
            const std::string which = std::string("schedule ") + to_string(schedule) +
                                      " under stress with seed " + std::to_string(stress.seed);
            try {
                const StressScope scope(stress);
                const auto results = run(schedule);
                const std::string how =
                    detail::difference_of(std::span(expected), results, runs.results_per_batch);
                if (!how.empty()) {
                    std::string text = which;
                    text.append(" differs from ")
                        .append(to_string(*schedules.begin()))
                        .append(": ")
                        .append(how);
                    return {false, std::move(text), stress.seed};
                }
            } catch (const std::exception& thrown) {
                std::throw_with_nested(Error("verify_schedules: " + which + ": " + thrown.what()));
            }
        }
    }
    if (StressScope::counts().operations == before) {
        throw Error(
            "verify_schedules: the runs handed no work to a stream of a checked backend, which stress "
            "needs; compile the whole program with -DSLUICE_CHECKED=1");
    }
    return {};
}

} // namespace sluice
