// Bodies of verify.hpp.
#pragma once

namespace sluice {

template <class Run>
ScheduleVerdict verify_schedules(Run&& run, std::initializer_list<Schedule> schedules, int repeats) {
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
