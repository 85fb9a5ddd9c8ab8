/// \file
/// Measures the time of one step, usually until the host has enqueued it, of sluice and of its hand-written
/// baseline, in alternating bursts.
///
/// A device takes about 1,000 launches ahead of time and then makes the host wait, so a long loop would
/// measure the device. A burst stays well below that, and between two bursts there is an untimed
/// synchronisation. The machine's mood (clocks, neighbours) changes slowly against the millisecond that a
/// pair of bursts takes, so the ratio of the two is steadier than either time.
#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/backend/types.hpp>

#include <support/heap_count.hpp> // the tests' own

#include "statistics.hpp"

namespace bench {

/// What is measured: `step()` enqueues one step and does not wait, `sync()` waits for all steps.
template <class T>
concept Subject = requires(T& subject) {
    subject.step();
    subject.sync();
};

/// Stands in where there is no baseline.
struct NoBaseline {};

/// Launches in a burst, whatever the number of stages.
inline constexpr int launches_per_burst = 200;
/// Bursts of each subject in one repetition.
inline constexpr int bursts_per_repetition = 50;

constexpr int steps_per_burst(int stages) { return launches_per_burst / stages; }

/// What a backend has created so far: streams, events, graphs and executables; device and pinned memory.
struct Created {
    std::uint64_t objects;
    std::uint64_t buffers;

    static Created by(const sluice::ObjectCounts& counts) {
        return {counts.streams.created + counts.events.created + counts.graphs.created +
                    counts.executables.created,
                counts.device_allocations.created + counts.pinned_allocations.created};
    }
};

/// Where a step's time ends.
enum class Until { enqueued, done };

/// What is measured between two synchronisations.
struct Burst {
    int stages; ///< in each step
    int steps = steps_per_burst(stages);
    Until until = Until::enqueued;
    int lead = 0; ///< Steps that come first and are not timed, for what fills only after a synchronisation.
};

/// Runs a burst and waits for it. Returns nanoseconds a step, with or without the wait.
template <Subject S>
double run_burst(S& subject, const Burst& burst) {
    for (int step = 0; step < burst.lead; ++step)
        subject.step();
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < burst.steps; ++step)
        subject.step();
    auto end = std::chrono::steady_clock::now();
    subject.sync();
    if (burst.until == Until::done)
        end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::nano>(end - start).count() / burst.steps;
}

/// One repetition. The benchmark's own time is the subject's a step; its counters are the medians of the
/// bursts (`step_ns`, `baseline_ns`, and `ratio`, of each pair), and what the subject's steps created in all
/// (`objects`, `buffers`, `heap`).
template <Subject S, class Baseline>
void measure(benchmark::State& state, S& subject, Baseline& baseline, const sluice::ObjectCounts& counts,
             const Burst& burst) {
    constexpr bool paired = Subject<Baseline>;

    // The first burst takes the subject through its first lap and wakes the machine up.
    run_burst(subject, burst);
    if constexpr (paired)
        run_burst(baseline, burst);

    std::vector<double> step_ns;
    std::vector<double> baseline_ns;
    std::vector<double> ratios;
    Created created{};
    std::uint64_t heap = 0;
    const auto run_subject = [&] {
        const Created created_before = Created::by(counts);
        const sluice::test::HeapCount heap_now;
        const double taken = run_burst(subject, burst);
        heap += heap_now.allocations();
        const Created created_after = Created::by(counts);
        created.objects += created_after.objects - created_before.objects;
        created.buffers += created_after.buffers - created_before.buffers;
        step_ns.push_back(taken);
        state.SetIterationTime(taken * burst.steps * 1e-9);
    };

    bool baseline_first = false;
    while (state.KeepRunningBatch(burst.steps)) {
        if constexpr (paired) {
            if (baseline_first)
                baseline_ns.push_back(run_burst(baseline, burst));
            run_subject();
            if (!baseline_first)
                baseline_ns.push_back(run_burst(baseline, burst));
            ratios.push_back(step_ns.back() / baseline_ns.back());
            baseline_first = !baseline_first;
        } else {
            run_subject();
        }
    }

    state.counters["stages"] = burst.stages;
    state.counters["step_ns"] = spread_of(step_ns).median;
    if constexpr (paired) {
        state.counters["baseline_ns"] = spread_of(baseline_ns).median;
        state.counters["ratio"] = spread_of(ratios).median;
    }
    state.counters["objects"] = static_cast<double>(created.objects);
    state.counters["buffers"] = static_cast<double>(created.buffers);
    state.counters["heap"] = static_cast<double>(heap);
}

/// Registers a benchmark of the usual length, whose time is set by hand.
template <class Run>
void add(const std::string& name, const Burst& burst, Run run) {
    benchmark::RegisterBenchmark(name.c_str(), run)
        ->UseManualTime()
        ->Iterations(bursts_per_repetition * burst.steps);
}

} // namespace bench
