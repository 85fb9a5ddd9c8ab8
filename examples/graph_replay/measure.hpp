/// \file
/// The experiment's heart: the same step launched one by one, and as a graph.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <common/progress.hpp>
#include <common/step_times.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/sluice.hpp>

namespace graph_replay {

/// How long a step is measured.
struct Plan {
    std::size_t warmup = 0;
    std::size_t steps = 0;
    std::size_t noted = 0; ///< how many of the last steps are kept as a timeline
};

/// What one way of running a step gave.
struct Measured {
    double step_microseconds = 0; ///< of one step, back to back, until the device is done
    double host_microseconds = 0; ///< of one step, until the host had enqueued it
    std::vector<float> results;   ///< what the steps, warm-up included, left behind
    std::string refusal;          ///< why there is no graph; empty where there is one, or none was asked for
    std::size_t nodes = 0;        ///< of the graph; the bodies of loops not counted
    sluice::GraphCounters counters;
    sluice::Timeline timeline; ///< of the last steps; empty unless asked for
};

/// Runs `part` from its first state on: `run_step(stream)` for each step, after `part.prepare`.
template <sluice::Backend B, class Part, class RunStep>
Measured measure(Part& part, const Plan& plan, const std::string& title, RunStep run_step) {
    using Clock = std::chrono::steady_clock;
    using Microseconds = std::chrono::duration<double, std::micro>;

    const sluice::BasicStream<B> stream;
    examples::Progress progress(title, static_cast<std::int64_t>(plan.warmup + plan.steps));
    const auto run = [&](std::size_t step) {
        part.prepare(stream.ref(), step);
        run_step(stream.ref());
        progress.update(static_cast<std::int64_t>(step + 1));
    };

    part.reset(stream.ref());
    for (std::size_t step = 0; step < plan.warmup; ++step)
        run(step);
    stream.sync();
    examples::StepTimes<B> times(stream.ref(), plan.steps, std::min(plan.noted, plan.steps));
    const auto start = Clock::now();
    for (std::size_t step = plan.warmup; step < plan.warmup + plan.steps; ++step)
        times.step([&] { run(step); });
    const auto enqueued = Clock::now();
    stream.sync();
    const auto done = Clock::now();

    const auto steps = static_cast<double>(plan.steps);
    Measured measured;
    measured.host_microseconds = Microseconds(enqueued - start).count() / steps;
    measured.step_microseconds = Microseconds(done - start).count() / steps;
    if (plan.noted > 0)
        measured.timeline = times.timeline(title);
    measured.results = part.results(stream.ref());
    return measured;
}

/// Every launch of every step by itself.
template <sluice::Backend B, class Part>
Measured one_by_one(Part& part, const Plan& plan) {
    return measure<B>(part, plan, part.name() + ", one by one",
                      [&](sluice::BasicStreamRef<B> stream) { part.work(stream); });
}

/// The first step one by one, then a capture, and a replay for each further step.
template <sluice::Backend B, class Part>
Measured as_graph(Part& part, const Plan& plan) {
    sluice::GraphCapture<sluice::NoKey, B> graph{{.on_refusal = [](const char*) {}}}; // told in the table
    Measured measured =
        measure<B>(part, plan, part.name() + ", as a graph", [&](sluice::BasicStreamRef<B> stream) {
            graph.run(stream, [&](sluice::BasicStreamRef<B> captured) { part.work(captured); });
        });
    measured.counters = graph.counters();
    measured.refusal = graph.refusal({});
    if (graph.graph({}) != nullptr)
        measured.nodes = graph.graph({})->nodes();
    return measured;
}

} // namespace graph_replay
