// Contract 5: the k-th call of the backend fails, for every k, in pipelines that are no chains.
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/alive.hpp"
#include "support/faulty_backend.hpp"
#include "support/sanitized.hpp"

#ifdef SLUICE_TEST_APART
#include "support/apart_backend.hpp"
namespace pipeline_faults_shapes_apart {
#else
#include "support/delayed_backend.hpp"
namespace pipeline_faults_shapes {
#endif

using namespace sluice;
using namespace sluice::test;

namespace {

#ifdef SLUICE_TEST_APART
using B = Faulty<Apart>;
#else
using B = Faulty<Delayed<TestBackend>>;
#endif
constexpr std::size_t words = 8;
constexpr std::size_t distinct = 2;
constexpr std::size_t count = 9;
constexpr long step = sanitized ? 3 : 1; // from call to call
using Diamond = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{1}, DagStage{6, true, false}>;
using WithCpu =
    Dag<B, DagStage{0, true}, DagStage{1, false, true, true}, DagStage{3}, DagStage{4, true, false, true}>;

// A pipeline with a source, from its making to its end. A failure on the way must be an Error, and a second try after a
// reset must succeed.
template <class D>
void run(const PipelineOptions& options, bool uncaptured) {
    D dag(words);
    dag.graphed[0] = !uncaptured;
    Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                  [](std::size_t index, PinnedBuffer<Word, B>& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index % distinct, i);
                  },
                  SourceOptions<B>{.workers = 1, .slots = 4, .batches = count}};
    auto pipeline = dag.pipeline(options);
    const auto epoch = [&] {
        for (std::size_t batch = 0; batch < count; ++batch) {
            const auto next = source.next();
            pipeline.submit(next);
            if (batch == 5)
                pipeline.flush();
        }
        pipeline.finish();
    };
    try {
        epoch();
    } catch (const Error& error) {
        Fault::disarm();
        CHECK(contains(error.what(), Fault::name));
        pipeline.reset();
        source.rewind();
        dag.clear();
        epoch();
    }
    CHECK(dag.memories() == dag.expected(repeating(count, distinct)));
}

template <class D>
void fail_each_call(Schedule schedule, int slots, int steps, bool uncaptured = false) {
    CAPTURE(std::string(to_string(schedule)));
    CAPTURE(slots);
    CAPTURE(steps);
    CAPTURE(uncaptured);
    const PipelineOptions options = dag_options(schedule, slots, steps);
    const Alive before = alive_now<B>();
    bool reached = true;
    long call = 1 - step;
    while (reached && call < 5000) {
        call += step;
        CAPTURE(call);
        Delay::set({.seed = static_cast<std::uint64_t>(call), .one_in = 16, .microseconds = 100});
        Fault::arm(call);
        try {
            run<D>(options, uncaptured);
        } catch (const Error& error) { // while it was made
            CHECK(contains(error.what(), Fault::name));
        }
        reached = Fault::calls_made() >= call;
        Fault::disarm();
        CHECK(alive_now<B>() == before);
    }
    CHECK_FALSE(reached);
    CHECK(call > 50);
}

} // namespace

TEST_CASE("Contract 5: a diamond, any one call fails: an Error, nothing leaked, usable after reset") {
    fail_each_call<Diamond>(Schedule::serial, 2, 0);
    fail_each_call<Diamond>(Schedule::overlapped, 2, 0);
    fail_each_call<Diamond>(Schedule::graphed, 2, 1);
    fail_each_call<Diamond>(Schedule::graphed, 3, 2);
    fail_each_call<Diamond>(Schedule::graphed, 4, 1, true);
}

TEST_CASE(
    "Contract 5: CPU stages among others, any one call fails: an Error, nothing leaked, usable after reset") {
    fail_each_call<WithCpu>(Schedule::serial, 2, 0);
    fail_each_call<WithCpu>(Schedule::overlapped, 2, 0);
    fail_each_call<WithCpu>(Schedule::graphed, 4, 0);
}
}
