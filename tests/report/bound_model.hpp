// A model of a pipeline of two stages: what would be noted of it, and how much faster it runs without a part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <sluice/report/bound.hpp>

namespace report_bound {

using namespace sluice;

/// What the parts of a pipeline of two stages cost, in microseconds a batch.
struct Costs {
    double fill = 0;
    int workers = 1;
    double loop = 0;
    double submit = 0;
    double first = 0;
    double second = 0;
    Schedule schedule = Schedule::overlapped;
    int slots = 2;
    bool held = false; ///< the first stage's call waits for its work, as a pageable copy does
};

/// Runs 60 batches of a pipeline with a source, and notes the last 40.
inline PipelineTimes model(const Costs& costs) {
    constexpr std::size_t batches = 60, noted = 40;
    const std::size_t workers = costs.workers == 0 ? 1 : static_cast<std::size_t>(costs.workers);
    const std::size_t source_slots = static_cast<std::size_t>(costs.workers) + 2;
    const auto slots = static_cast<std::size_t>(costs.slots);
    PipelineTimes times;
    times.stage_names = {"first", "second"};
    times.stage_units = {"GPU 0", "GPU 0"};
    times.schedule = costs.schedule;
    times.workers = costs.workers;
    std::vector<double> worker_free(workers, 0), first_end, second_end;
    double caller = 0;
    const auto before = [](const std::vector<double>& ends, std::size_t by) {
        return ends.size() >= by && by > 0 ? ends[ends.size() - by] : 0;
    };
    std::vector<StageTime> firsts, seconds;
    for (std::size_t batch = 0; batch < batches; ++batch) {
        double& worker = *std::min_element(worker_free.begin(), worker_free.end());
        FillTime fill{.batch = batch, .worker = static_cast<int>(&worker - worker_free.data())};
        fill.asked = caller;
        fill.claimed = costs.workers == 0 ? caller : worker;
        fill.begin = std::max(fill.claimed, before(first_end, source_slots));
        fill.end = worker = fill.begin + costs.fill;
        fill.given = std::max(fill.asked, fill.end);
        StageTime submit{2 + 1, batch, fill.given, fill.given + costs.submit, 0};
        const double free = costs.schedule == Schedule::serial
                                ? before(second_end, 1)
                                : std::max(before(first_end, 1), before(second_end, slots));
        StageTime first{0, batch, std::max(submit.begin, free), 0, 0};
        if (costs.held)
            submit.end = first.begin + costs.first + costs.submit;
        // The device gets half of a stage's work by the time that the caller is half through the launches.
        const double half = submit.end - costs.submit / 2;
        first.end = std::max(first.begin + costs.first, half);
        StageTime second{1, batch, std::max({half, first.end, before(second_end, 1)}), 0, 0};
        second.end = std::max(second.begin + costs.second, submit.end);
        first_end.push_back(first.end);
        second_end.push_back(second.end);
        caller = submit.end + costs.loop;
        if (batch < batches - noted)
            continue;
        times.fills.push_back(fill);
        times.submits.push_back(submit);
        firsts.push_back(first);
        seconds.push_back(second);
    }
    times.stages = firsts;
    times.stages.insert(times.stages.end(), seconds.begin(), seconds.end());
    return times;
}

inline double period(const Costs& costs) {
    const PipelineTimes times = model(costs);
    return (times.stages.back().end - times.stages[40].end) / 39;
}

/// How many times as fast the model runs when a part costs half, or does not wait.
inline double gain_without(const Costs& costs, BoundPart part, std::size_t stage) {
    Costs less = costs;
    if (part == BoundPart::source)
        less.fill /= 2;
    if (part == BoundPart::loop)
        less.loop /= 2;
    if (part == BoundPart::submit)
        less.submit /= 2;
    if (part == BoundPart::stage)
        (stage == 0 ? less.first : less.second) /= 2;
    if (part == BoundPart::waiting)
        less.schedule = Schedule::overlapped;
    return period(costs) / period(less);
}

inline double most_gain(const Costs& costs) {
    double most = 1;
    for (const auto& [part, stage] : {std::pair{BoundPart::source, 0},
                                      {BoundPart::loop, 0},
                                      {BoundPart::submit, 0},
                                      {BoundPart::stage, 0},
                                      {BoundPart::stage, 1},
                                      {BoundPart::waiting, 0}})
        most = std::max(most, gain_without(costs, part, static_cast<std::size_t>(stage)));
    return most;
}

} // namespace report_bound
