// Fifty thousand batches through GPU and CPU stages, with random delays: the bits of a plain loop.
#include <string>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/apart_backend.hpp"
#include "support/sanitized.hpp"

namespace pipeline_many_batches {

using namespace sluice;
using namespace sluice::test;

namespace {

constexpr std::size_t words = 4;
constexpr std::size_t count = sanitized ? 2500 : 50000;

// From a stream to threads and back, with a way round them.
template <class B>
using ThereAndBack = Dag<B, DagStage{0, true}, DagStage{1, false, true, true}, DagStage{3, true, false}>;
// Two threads side by side, and one that gathers what they made.
template <class B>
using SideBySide = Dag<B, DagStage{0, true}, DagStage{1, false, true, true}, DagStage{1, true, true, true},
                       DagStage{1}, DagStage{2 | 4 | 8, false, false, true}>;

template <class D>
void run(Schedule schedule, int lanes, std::uint64_t seed) {
    using B = typename D::backend;
    CAPTURE(std::string(to_string(schedule)));
    CAPTURE(seed);
    const Inputs<B> inputs(3, words);
    Delay::set({.seed = seed, .one_in = 2000, .microseconds = 500});
    D dag(words);
    dag.lanes[1] = lanes;
    auto options = dag_options(schedule, 3, 0);
    options.slots = slots_for(dag, options);
    auto pipeline = dag.pipeline(options);
    for (std::size_t batch = 0; batch < count; ++batch)
        pipeline.submit(inputs[batch % 3]).stays();
    pipeline.finish();
    CHECK(dag.memories() == dag.expected(repeating(count, 3)));
}

} // namespace

TEST_CASE("many batches: streams and threads of the backend's own") {
    using B = Delayed<TestBackend>;
    run<ThereAndBack<B>>(Schedule::overlapped, 2, 1);
    run<SideBySide<B>>(Schedule::graphed, 1, 2);
}

TEST_CASE("many batches: threads beside streams that are none of the Host backend's") {
    run<ThereAndBack<Apart>>(Schedule::overlapped, 2, 3);
    run<SideBySide<Apart>>(Schedule::graphed, 1, 4);
}

} // namespace pipeline_many_batches
