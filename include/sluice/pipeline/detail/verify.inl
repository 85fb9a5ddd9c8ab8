// Bodies of verify.hpp.
#pragma once

namespace sluice {

namespace detail {

/// Whether the bytes of an `Element` are those of poisoned memory, or came of them: NaN.
template <class Element>
bool looks_poisoned(const unsigned char* bytes) {
    if constexpr (std::is_floating_point_v<Element>) {
        Element element;
        std::memcpy(&element, bytes, sizeof(Element));
        return element != element;
    } else {
        for (std::size_t i = 0; i < sizeof(Element); ++i) {
            if (bytes[i] != 0xFFU)
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
concept RunsWork = std::is_invocable_v<Run&, Schedule> &&
    requires(const std::remove_cvref_t<std::invoke_result_t<Run&, Schedule>>& results) {
    std::span(results);
};

/// That there was something to compare in runs that do not differ.
inline void require_results(const std::vector<unsigned char>& results) {
    if (results.empty())
        throw Error("verify_schedules: there are no results, expected at least one to be compared");
}

/// A copy of the results: what `run` returned may be a view of memory that its next call writes.
template <class Results>
std::vector<unsigned char> bytes_of(const Results& results) {
    const std::span given(results);
    static_assert(std::is_trivially_copyable_v<typename decltype(given)::value_type>,
                  "sluice::verify_schedules: results must be trivially copyable");
    const auto* const bytes = reinterpret_cast<const unsigned char*>(given.data());
    return {bytes, bytes + given.size_bytes()};
}

/// Says how the results of a run differ from the `first` ones; empty where they do not.
template <class Run>
std::string difference_of(const std::vector<unsigned char>& first, Run& run, Schedule schedule,
                          std::size_t per_batch) {
    const std::uint64_t poisonings = StressScope::counts().poisonings;
    const auto& results = run(schedule);
    using Element = typename decltype(std::span(results))::value_type;
    const std::vector<unsigned char> second = bytes_of(results);
    const std::size_t count = first.size() / sizeof(Element);
    if (second.size() != first.size())
        return detail::counted(second.size() / sizeof(Element), "result") + " instead of " +
               std::to_string(count);
    for (std::size_t index = 0; index < count; ++index) {
        const unsigned char* const before = first.data() + index * sizeof(Element);
        const unsigned char* const now = second.data() + index * sizeof(Element);
        if (std::memcmp(before, now, sizeof(Element)) == 0)
            continue;
        std::string text = "result " + std::to_string(index) + " of " + std::to_string(count);
        if (per_batch > 0)
            text += ", of batch " + std::to_string(index / per_batch) + ",";
        text += " is the first that has other bits";
        // Without poison they are a NaN or a -1 of the run's own.
        if (StressScope::counts().poisonings != poisonings && looks_poisoned<Element>(now) &&
            !looks_poisoned<Element>(before))
            text += ": those of a poisoned slot, which was read before it was written or after it was handed "
                    "back";
        return text;
    }
    return {};
}

} // namespace detail

template <class Run>
ScheduleVerdict verify_schedules(Run&& run, std::initializer_list<Schedule> schedules, int repeats) {
    static_assert(detail::RunsWork<Run>,
                  "sluice::verify_schedules: what runs the work must be callable as run(Schedule), and "
                  "return its results as a contiguous range, such as a std::vector<float>");
    detail::require_callable("verify_schedules: what runs the work", run);
    const Schedule first = detail::first_of(schedules);
    if (repeats < 1)
        throw Error("verify_schedules: the repeats must be 1 or more, got " + std::to_string(repeats));
    if (schedules.size() == 1 && repeats == 1) {
        throw Error("verify_schedules: one run of one schedule has nothing to be compared with; expected "
                    "another schedule, or 2 repeats or more");
    }
    ScheduleVerdict verdict;
    const std::vector<unsigned char> expected = detail::bytes_of(run(first));
    bool is_first = true;
    for (const Schedule schedule : schedules) {
        for (int repeat = 0; repeat < repeats && verdict.identical; ++repeat) {
            if (std::exchange(is_first, false))
                continue;
            const std::string how = detail::difference_of(expected, run, schedule, 0);
            if (how.empty())
                continue;
            verdict.identical = false;
            verdict.difference = std::string("schedule ") + to_string(schedule) + " differs from " +
                                 to_string(*schedules.begin()) + ": " + how;
        }
    }
    if (verdict.identical)
        detail::require_results(expected);
    return verdict;
}

template <class Run>
ScheduleVerdict verify_schedules(Run&& run, const StressRuns& runs,
                                 std::initializer_list<Schedule> schedules) {
    static_assert(detail::RunsWork<Run>,
                  "sluice::verify_schedules: what runs the work must be callable as run(Schedule), and "
                  "return its results as a contiguous range, such as a std::vector<float>");
    detail::require_callable("verify_schedules: what runs the work", run);
    if (runs.seeds < 1)
        throw Error("StressRuns::seeds must be 1 or more, got " + std::to_string(runs.seeds));
    const std::vector<unsigned char> expected = detail::bytes_of(run(detail::first_of(schedules)));
    const std::uint64_t before = StressScope::counts().operations;
    Stress stress = runs.stress;
    for (int seed = 0; seed < runs.seeds; ++seed, ++stress.seed) {
        for (const Schedule schedule : schedules) {
            const std::string which = std::string("schedule ") + to_string(schedule) +
                                      " under stress with seed " + std::to_string(stress.seed);
            try {
                const StressScope scope(stress);
                const std::string how =
                    detail::difference_of(expected, run, schedule, runs.results_per_batch);
                if (!how.empty()) {
                    std::string text = which;
                    text.append(" differs from ")
                        .append(to_string(*schedules.begin()))
                        .append(": ")
                        .append(how);
                    return {false, std::move(text), stress.seed};
                }
            } catch (...) {
                std::throw_with_nested(
                    Error("verify_schedules: " + which + ": " + detail::words_of_handled()));
            }
        }
    }
    if (StressScope::counts().operations == before) {
        throw Error("verify_schedules: the runs handed no work to a stream of a checked backend, which "
                    "stress needs; compile the whole program with -DSLUICE_CHECKED=1");
    }
    detail::require_results(expected);
    return {};
}

} // namespace sluice
