/// \file
/// How long a piece of work takes: waiting after each, back to back, and as the replays of a graph.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <common/progress.hpp>
#include <common/step_times.hpp>
#include <common/timelines.hpp>
#include <masked_giou/options.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/sluice.hpp>

namespace masked_giou {

/// How long something is measured, and in which ways.
struct Plan {
    std::size_t warmup = 0;
    std::size_t steps = 0;
    bool one_by_one = true;
    bool as_graph = true;
    examples::Timelines* timelines = nullptr; ///< keeps the last steps, where there is one

    [[nodiscard]] std::size_t noted() const {
        const auto wanted = static_cast<std::size_t>(timelines != nullptr ? timelines->timed_batches() : 0);
        return std::min(wanted, steps);
    }
};

/// The plan for a part whose steps are `steps` after `warmup` unless the options say otherwise.
inline Plan plan_for(const Options& options, std::size_t steps, std::size_t warmup,
                     examples::Timelines* timelines = nullptr) {
    return {.warmup = options.warmup ? static_cast<std::size_t>(*options.warmup) : warmup,
            .steps = options.steps ? static_cast<std::size_t>(*options.steps) : steps,
            .one_by_one = options.one_by_one(),
            .as_graph = options.as_graph(),
            .timelines = timelines};
}

/// Launched one by one. Times are of one step, in microseconds.
struct OneByOne {
    double waiting = 0;      ///< with a wait after each step
    double back_to_back = 0; ///< with one wait after all
    double host = 0;         ///< until the host had enqueued it, back to back
    std::vector<std::byte> results;
};

/// As a graph: the first step by itself, then a capture, then replays back to back.
struct AsGraph {
    double back_to_back = 0;
    std::vector<std::byte> results;
    std::size_t nodes = 0;
    sluice::GraphCounters counters;
    std::string refusal; ///< why there is no graph; empty where there is one
};

/// What a piece of work took, in the ways that were asked for.
struct Measured {
    std::optional<OneByOne> one_by_one;
    std::optional<AsGraph> graph;

    // Microseconds a step; empty where that way was not asked for.
    [[nodiscard]] std::optional<double> waiting() const {
        return one_by_one ? std::optional(one_by_one->waiting) : std::nullopt;
    }
    [[nodiscard]] std::optional<double> back_to_back() const {
        return one_by_one ? std::optional(one_by_one->back_to_back) : std::nullopt;
    }
    [[nodiscard]] std::optional<double> as_graph() const {
        return graph ? std::optional(graph->back_to_back) : std::nullopt;
    }
    /// The best of back to back and as a graph that was measured.
    [[nodiscard]] double best() const {
        return one_by_one && graph ? std::min(one_by_one->back_to_back, graph->back_to_back)
                                   : (graph ? graph->back_to_back : one_by_one->back_to_back);
    }
    /// What the work left behind.
    [[nodiscard]] const std::vector<std::byte>& results() const {
        return one_by_one ? one_by_one->results : graph->results;
    }

    /// Whether both ways left the same bits; empty when not both were asked for.
    [[nodiscard]] std::optional<bool> same_bits() const {
        if (!one_by_one || !graph)
            return std::nullopt;
        return one_by_one->results == graph->results;
    }
};

/// A piece of work. It is the same each time: what it writes depends on nothing that it wrote before.
///
/// | callable | what it does |
/// | --- | --- |
/// | `spoil(stream)` | overwrites what the work writes, so that results are this run's own |
/// | `work(stream)` | enqueues the work |
/// | `results(stream)` | gives the bytes of what it wrote; waits |
template <sluice::Backend B, class Spoil, class Work, class Results>
Measured measure(const std::string& title, const Plan& plan, Spoil spoil, Work work, Results results) {
    using Clock = std::chrono::steady_clock;
    const sluice::BasicStream<B> stream;
    const auto since = [&](Clock::time_point start) {
        return std::chrono::duration<double, std::micro>(Clock::now() - start).count() /
               static_cast<double>(plan.steps);
    };
    const auto total = static_cast<std::int64_t>(plan.steps);
    examples::Progress progress(title, total * (2 * plan.one_by_one + plan.as_graph));
    std::int64_t done = 0;
    const auto repeat = [&](std::size_t times, auto&& step) {
        for (std::size_t i = 0; i < times; ++i)
            step();
    };

    Measured measured;
    if (plan.one_by_one) {
        OneByOne& found = measured.one_by_one.emplace();
        spoil(stream.ref());
        repeat(plan.warmup, [&] { work(stream.ref()); });
        stream.sync();
        auto start = Clock::now();
        repeat(plan.steps, [&] {
            work(stream.ref());
            stream.sync();
        });
        found.waiting = since(start);
        progress.update(done += total);
        examples::StepTimes<B> times(stream.ref(), plan.steps, plan.noted());
        start = Clock::now();
        repeat(plan.steps, [&] { times.step([&] { work(stream.ref()); }); });
        found.host = since(start);
        stream.sync();
        found.back_to_back = since(start);
        if (plan.noted() > 0)
            plan.timelines->add(times.timeline(title + ", one by one"));
        progress.update(done += total);
        found.results = results(stream.ref());
    }
    if (plan.as_graph) {
        AsGraph& found = measured.graph.emplace();
        sluice::GraphCapture<sluice::NoKey, B> graph{{.on_refusal = [](const char*) {}}}; // told in the table
        const auto replay = [&] { graph.run(stream.ref(), work); };
        // At least two: the first runs by itself, the second captures.
        repeat(plan.warmup < 2 ? 2 : plan.warmup, replay);
        graph.finish();
        spoil(stream.ref());
        stream.sync();
        examples::StepTimes<B> times(stream.ref(), plan.steps, plan.noted());
        const auto start = Clock::now();
        repeat(plan.steps, [&] { times.step(replay); });
        stream.sync();
        found.back_to_back = since(start);
        if (plan.noted() > 0)
            plan.timelines->add(times.timeline(title + ", as a graph"));
        progress.update(done += total);
        found.results = results(stream.ref());
        found.counters = graph.counters();
        found.refusal = graph.refusal({});
        if (graph.graph({}) != nullptr)
            found.nodes = graph.graph({})->nodes();
    }
    return measured;
}

} // namespace masked_giou
