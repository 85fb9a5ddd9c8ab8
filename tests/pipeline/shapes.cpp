// Pipelines of any shape give the bits of a plain loop, under every schedule.
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/delayed_backend.hpp"
#include "support/sanitized.hpp"

namespace pipeline_shapes {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 24;
constexpr std::size_t distinct = 2; // Batches that differ, of which the others are repetitions.

// With flush and finish here and there, unless `ends` is 0.
template <class D>
void check(const PipelineOptions& options, std::size_t count, std::size_t ends) {
    CAPTURE(std::string(to_string(options.schedule)));
    CAPTURE(options.slots);
    CAPTURE(options.steps_per_graph);
    CAPTURE(count);
    CAPTURE(ends);
    static const Inputs<B> inputs(distinct, words);
    static std::uint64_t seed = 0;
    Delay::set({.seed = ++seed, .one_in = count > 100 ? 40u : 6u, .microseconds = 150});
    D dag(words);
    auto pipeline = dag.pipeline(options);
    for (std::size_t batch = 0; batch < count; ++batch) {
        pipeline.submit(inputs[batch % distinct]).stays();
        if (ends > 0 && batch % ends == 0)
            batch % 2 == 0 ? pipeline.flush() : pipeline.finish();
    }
    pipeline.finish();
    CHECK(dag.memories() == dag.expected(repeating(count, distinct)));
    CHECK(pipeline.submitted() == count);
    if (options.schedule == Schedule::graphed) {
        CHECK(pipeline.graph_counters().refusals == 0);
        if (ends == 0 && count >= 100)
            CHECK(pipeline.graph_counters().replays > 0);
    }
}

template <DagStage... Ss>
void check_everywhere() {
    using D = Dag<B, Ss...>;
    for (const int slots : {1, 2, 3, 4}) {
        if (sanitized && slots % 2 == 0)
            continue;
        for (const int steps : {0, 1, 4, 5, 16}) {
            const auto graphed = dag_options(Schedule::graphed, slots, steps);
            for (const int count : {0, 1, 2, slots - 1, slots + 1, 40})
                check<D>(graphed, static_cast<std::size_t>(count), 0);
            check<D>(graphed, 120, 0);
            check<D>(graphed, 40, 7);
        }
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
            const auto options = dag_options(schedule, slots, 0);
            for (const int count : {0, 1, 2, slots - 1, slots + 1, 40})
                check<D>(options, static_cast<std::size_t>(count), 0);
            check<D>(options, 40, 7);
        }
    }
}

constexpr unsigned from(std::size_t stage) { return 1u << stage; }

} // namespace

TEST_CASE("shapes: a diamond") {
    check_everywhere<DagStage{0, true}, DagStage{from(0)}, DagStage{from(0)},
                     DagStage{from(1) | from(2), false, false}>();
}

TEST_CASE("shapes: one output that three stages read, none of which makes anything") {
    check_everywhere<DagStage{0, true}, DagStage{from(0), false, false}, DagStage{from(0), true, false},
                     DagStage{from(0), false, false}>();
}

TEST_CASE("shapes: a join of two roots, with an unused result") {
    check_everywhere<DagStage{0, true}, DagStage{0, true}, DagStage{from(0) | from(1)}>();
}

TEST_CASE("shapes: stages two and four read stage one, and the last one the batch") {
    check_everywhere<DagStage{0, true}, DagStage{from(0)}, DagStage{from(1)},
                     DagStage{from(0) | from(2), true, false}>();
}

TEST_CASE("shapes: two chains that have nothing to do with each other, and a stage alone") {
    check_everywhere<DagStage{0, true}, DagStage{0, true}, DagStage{from(0), false, false},
                     DagStage{from(1), false, false}, DagStage{0, true, false}>();
}

TEST_CASE("shapes: each stage reads all before it") {
    check_everywhere<DagStage{0, true}, DagStage{from(0), true}, DagStage{from(0) | from(1), true},
                     DagStage{from(0) | from(1) | from(2), true}>();
}

TEST_CASE("shapes: a long way and a short one from a root to a join") {
    check_everywhere<DagStage{0, true}, DagStage{from(0)}, DagStage{from(1)}, DagStage{from(2)},
                     DagStage{from(3) | from(0), false, false}>();
}

} // namespace pipeline_shapes
