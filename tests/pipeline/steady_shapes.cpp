// Contract 2 for pipelines of any shape: diamonds, CPU stages, graphs of many steps, batches that are held.
#include <string>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "pipeline/steady_case.hpp"
#include "support/apart_backend.hpp"
#include "support/can_share.hpp"

namespace pipeline_steady_shapes {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t words = 16;
constexpr std::size_t distinct = 2;

template <class B>
using Diamond = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{1}, DagStage{6, true, false}>;
template <class B>
using WithCpu =
    Dag<B, DagStage{0, true}, DagStage{1, true, true, true}, DagStage{3}, DagStage{4, false, false, true}>;
template <class B>
using Late = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{2}, DagStage{5, true, false}>;

// After `warm_up` batches, `more` create and allocate nothing.
template <class D>
void check(const PipelineOptions& asked, std::size_t warm_up, bool from_source, int lanes = 1,
           int multiprocessors = 0) {
    using B = typename D::backend;
    CAPTURE(std::string(to_string(asked.schedule)));
    CAPTURE(asked.slots);
    CAPTURE(asked.steps_per_graph);
    CAPTURE(from_source);
    Delay::set({.one_in = 0});
    D dag(words);
    dag.lanes[1] = lanes;
    dag.multiprocessors[2] = multiprocessors;
    PipelineOptions options = asked;
    options.slots = slots_for(dag, options);
    auto pipeline = dag.pipeline(options);
    const std::size_t count = warm_up + 160;
    Made before, after;
    if (from_source) {
        Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                      [](std::size_t index, PinnedBuffer<Word, B>& out) {
                          for (std::size_t i = 0; i < words; ++i)
                              out[i] = input_word(index % distinct, i);
                      },
                      SourceOptions<B>{.workers = 1, .slots = 8, .batches = count}};
        for (std::size_t batch = 0; batch < count; ++batch) {
            if (batch == warm_up)
                before = Made::template so_far<B>();
            const auto next = source.next();
            pipeline.submit(next);
        }
        pipeline.finish();
        after = Made::template so_far<B>();
    } else {
        const Inputs<B> inputs(distinct, words);
        for (std::size_t batch = 0; batch < count; ++batch) {
            if (batch == warm_up)
                before = Made::template so_far<B>();
            pipeline.submit(inputs[batch % distinct]).stays();
        }
        pipeline.finish();
        after = Made::template so_far<B>();
    }
    CHECK(after == before);
    CHECK(dag.memories() == dag.expected(repeating(count, distinct)));
}

template <class B>
void check_all() {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        for (const int slots : {1, 2, 3}) {
            for (const bool from_source : {false, true}) {
                const auto options = dag_options(schedule, slots, 0);
                check<Diamond<B>>(options, 40, from_source);
                check<WithCpu<B>>(options, 40, from_source);
                check<WithCpu<B>>(options, 40, from_source, 2);
                check<Late<B>>(options, 40, from_source);
                if (can_share<B>())
                    check<Diamond<B>>(options, 40, from_source, 2, 8);
            }
        }
    }
    for (const int slots : {1, 2, 4}) {
        for (const int steps : {1, 4, 16}) {
            const auto options = dag_options(Schedule::graphed, slots, steps);
            check<Diamond<B>>(options, 160, false);
            check<Late<B>>(options, 160, false);
            check<WithCpu<B>>(options, 160, false);
            if (can_share<B>())
                check<Diamond<B>>(options, 160, false, 1, 8);
        }
        // A source of 8 slots has graphs of 4 at most.
        check<Diamond<B>>(dag_options(Schedule::graphed, slots, 4), 160, true);
        check<WithCpu<B>>(dag_options(Schedule::graphed, slots, 4), 160, true);
    }
}

} // namespace

TEST_CASE("Contract 2: after the first laps a step creates and allocates nothing, whatever the shape") {
    check_all<TestBackend>();
}

TEST_CASE("Contract 2: nor where CPU stages run on threads beside the backend's streams") {
    check_all<Apart>();
}

} // namespace pipeline_steady_shapes
