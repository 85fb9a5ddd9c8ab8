/// \file
/// The experiment from beginning to end.
#pragma once

#include <limits>
#include <optional>
#include <ostream>
#include <string>

#include <common/bits.hpp>
#include <common/report.hpp>
#include <common/text.hpp>
#include <common/timelines.hpp>
#include <graph_replay/chain.hpp>
#include <graph_replay/learning_rate.hpp>
#include <graph_replay/linear.hpp>
#include <graph_replay/measure.hpp>
#include <graph_replay/options.hpp>
#include <graph_replay/solver.hpp>
#include <graph_replay/table.hpp>
#include <sluice/backend/default.hpp>

namespace graph_replay {
namespace detail {

inline examples::RunResult run_result(const char* schedule, const std::string& part,
                                      const Measured& measured) {
    examples::RunResult run;
    run.schedule = schedule;
    run.step_microseconds = measured.step_microseconds;
    run.steps_per_second = 1e6 / measured.step_microseconds;
    run.loss_first = run.loss_last = std::numeric_limits<double>::quiet_NaN(); // null in JSON
    run.extra.emplace_back("part", part);
    run.extra.emplace_back("host_microseconds", measured.host_microseconds);
    return run;
}

inline void add_graph_values(const Measured& graphed, examples::RunResult& run) {
    const auto whole = [](auto value) { return static_cast<std::int64_t>(value); };
    run.extra.emplace_back("nodes", whole(graphed.nodes));
    run.extra.emplace_back("captures", whole(graphed.counters.captures));
    run.extra.emplace_back("replays", whole(graphed.counters.replays));
    run.extra.emplace_back("refusals", whole(graphed.counters.refusals));
    if (!graphed.refusal.empty())
        run.extra.emplace_back("refusal", graphed.refusal);
}

/// One step, in the ways that were asked for. Adds to the report what came out.
template <sluice::Backend B, class Part>
void compare(Part&& part, const Options& options, const Plan& plan, examples::Report& report,
             examples::Timelines& timelines, std::ostream& out) {
    Row row;
    row.part = part.name();
    std::optional<Measured> eager;
    if (options.one_by_one()) {
        eager = one_by_one<B>(part, plan);
        row.one_by_one = eager->step_microseconds;
        timelines.add(eager->timeline);
        examples::RunResult& run = report.runs.emplace_back(run_result("serial", row.part, *eager));
        run.identical_to_serial = true;
    }
    if (options.as_graph()) {
        const Measured graphed = as_graph<B>(part, plan);
        row.as_graph = graphed.step_microseconds;
        row.nodes = graphed.nodes;
        timelines.add(graphed.timeline);
        row.captures = static_cast<std::size_t>(graphed.counters.captures);
        row.replays = static_cast<std::size_t>(graphed.counters.replays);
        row.refusal = graphed.refusal;
        if (eager)
            row.same_bits = examples::same_bits(eager->results, graphed.results);
        examples::RunResult& run = report.runs.emplace_back(run_result("graphed", row.part, graphed));
        run.identical_to_serial = row.same_bits;
        add_graph_values(graphed, run);
    }
    print_row(row, out);
}

} // namespace detail

/// Runs each step that was asked for one by one and as a graph, from the same state, and compares what comes out bit by
/// bit. Tells the story on `out`, and returns what the JSON file holds.
///
/// Throws `sluice::Error` for a backend's failure.
template <sluice::Backend B>
examples::Report run(const Options& options, std::ostream& out) {
    examples::Timelines timelines(options.timelines);
    timelines.sample_memory<B>();
    const Plan plan{.warmup = static_cast<std::size_t>(options.warmup.value_or(10)),
                    .steps = static_cast<std::size_t>(options.steps.value_or(100)),
                    .noted = static_cast<std::size_t>(timelines.timed_batches())};
    examples::Report report;
    report.experiment = "graph_replay";
    report.backend = B::name;
    report.device = B::device_name(B::current_device());
    report.data = options.data;
    report.batch = options.batch.value_or(16);
    report.steps = static_cast<std::int64_t>(plan.steps);
    out << "graph_replay on " << report.backend << ": " << report.device << "\n"
        << examples::counted(plan.steps, "step") << " after " << plan.warmup
        << " of warm-up; linear: " << examples::with_commas(options.inputs) << " -> "
        << examples::with_commas(options.outputs) << ", batch " << report.batch << std::endl;
    print_heading(out);

    const auto compare = [&](auto&& part) {
        detail::compare<B>(part, options, plan, report, timelines, out);
    };
    if (options.wants("linear"))
        compare(Linear<B>(options));
    if (options.wants("chain")) {
        for (const std::size_t length : options.chains)
            compare(Chain<B>(length));
    }
    if (options.wants("loop")) {
        for (const int unroll : {1, 8})
            compare(Solver<B>(options, unroll));
    }
    if (options.wants("rate"))
        compare(LearningRate<B>(options));
    timelines.show(out, report);
    return report;
}

// run_host.cpp and run_cuda.cpp instantiate it, beside each other.
extern template examples::Report run<sluice::Host>(const Options&, std::ostream&);
#if SLUICE_HAS_CUDA
extern template examples::Report run<sluice::Cuda>(const Options&, std::ostream&);
#endif

} // namespace graph_replay
