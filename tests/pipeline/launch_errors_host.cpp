// Contract 5: launches that are refused, on a backend of the host's on which they can be; launch_errors.cpp is a device's.
#include <cstddef>
#include <optional>
#include <string>

#include "pipeline/chain.hpp"
#include "support/refusing_backend.hpp"

namespace pipeline_launch_errors_host {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Refusing<Host>;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 16;
constexpr std::size_t batches = 4;
constexpr int stages = 3;
constexpr Schedule schedules[] = {Schedule::serial, Schedule::overlapped, Schedule::graphed};

template <class P>
void submit_all(P& pipeline, const Inputs<B>& inputs) {
    for (std::size_t batch = 0; batch < batches; ++batch)
        pipeline.submit(inputs[batch]).stays();
}

PipelineOptions options_for(Schedule schedule, int timed) {
    PipelineOptions options{.schedule = schedule, .timed_batches = timed};
    options.graphs.on_refusal = nullptr;
    return options;
}

} // namespace

TEST_CASE("Contract 5: a refused launch from outside is not blamed on a stage, and changes nothing") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for (const Schedule schedule : schedules) {
        CAPTURE(std::string(to_string(schedule)));
        chain.clear();
        auto pipeline = chain.pipeline<stages>(options_for(schedule, 0));
        for (std::size_t batch = 0; batch < batches; ++batch) {
            Launches::refuse();
            const Caught error([&] { pipeline.submit(inputs[batch]).stays(); });
            REQUIRE(error);
            CHECK(error->name() == Launches::name);
            CHECK(error->stage().empty());
            CHECK_FALSE(error->batch());
            CHECK_FALSE(pipeline.failed());
            pipeline.submit(inputs[batch]).stays();
        }
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
    }
}

TEST_CASE("Contract 5: a refused launch of a stage's is reported with the stage and the batch, at once") {
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    for (const Schedule schedule : schedules) {
        for (const int timed : {0, 4}) {
            for (std::size_t bad = 0; bad < stages; ++bad) {
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(timed);
                CAPTURE(bad);
                chain.clear();
                // Under Schedule::graphed it is called once more, eagerly, since its capture is refused.
                chain.after = [=](std::size_t stage, Ref, std::size_t batch) {
                    if (stage == bad && (schedule == Schedule::graphed ? batch >= 2 : batch == 2))
                        Launches::refuse();
                };
                auto pipeline = chain.pipeline<stages>(options_for(schedule, timed));
                const Caught error([&] { submit_all(pipeline, inputs); });
                REQUIRE(error);
                CHECK(error->name() == Launches::name);
                CHECK(error->stage() == Chain<B>::names[bad]);
                CHECK(error->batch() == std::size_t{2});
                CHECK(pipeline.failed());
                CHECK_FALSE(Launches::left_behind());

                pipeline.reset();
                chain.after = nullptr;
                chain.clear();
                submit_all(pipeline, inputs);
                pipeline.finish();
                CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
            }
        }
    }
}

TEST_CASE("Contract 5: with times noted, a refused launch is told before the stage's end is noted") {
    // Of the stage that is refused no time is noted, though it was begun.
    const Inputs<B> inputs(batches, words);
    Chain<B> chain(stages, words, batches);
    chain.after = [](std::size_t stage, Ref, std::size_t batch) {
        if (stage == 1 && batch == 1)
            Launches::refuse();
    };
    auto pipeline = chain.pipeline<stages>(options_for(Schedule::overlapped, 4));
    CHECK_THROWS_AS(submit_all(pipeline, inputs), Error);
    std::size_t of_second = 0;
    for (const StageTime& time : pipeline.stage_times())
        of_second += time.stage == 1 ? 1 : 0;
    CHECK(of_second == 1);
}

TEST_CASE("GraphCapture: launches that are refused before a capture, and within, are told") {
    const BasicStream<B> stream;
    PinnedBuffer<Word, B> from(4);
    DeviceBuffer<Word, B> to(4);
    static std::string told;
    const auto work = [&](Ref at) { copy(at, to, from); };
    const auto tell = [](const char* reason) { told = reason; };
    GraphCapture<int, B> graphs({.on_refusal = tell});
    const auto left_behind = [&](auto call) {
        Launches::refuse();
        const Caught error(call);
        REQUIRE(error);
        CHECK(contains(error.text(), "had left an error behind"));
        CHECK(contains(error.text(), Launches::name));
        CHECK_FALSE(Launches::left_behind());
    };
    left_behind([&] { (void)graphs.run(stream, 1, work); });
    left_behind([&] { (void)capture(stream.ref(), work); });
    (void)graphs.run(stream, 1, work);
    left_behind([&] { (void)graphs.run(stream, 1, work); });
    CHECK(graphs.run(stream, 1, work).replayed());
    left_behind([&] { (void)graphs.recapture(stream, 1, work); });

    // Within a capture the operation is left out, and the graph is of no use.
    told.clear();
    const auto refused = [&](Ref at) {
        work(at);
        Launches::refuse();
    };
    CHECK_THROWS_AS((void)capture(stream.ref(), refused), Error);
    CHECK_FALSE(Launches::left_behind());
    bool refuses = false;
    const auto sometimes = [&](Ref at) {
        work(at);
        if (refuses)
            Launches::refuse();
    };
    (void)graphs.run(stream, 2, sometimes);
    refuses = true;
    (void)graphs.run(stream, 2, sometimes);
    CHECK(Launches::left_behind()); // of the eager run, which is the caller's
    CHECK(contains(told, "a call within the work failed and was left out"));
    CHECK(contains(graphs.refusal(2), Launches::name));
    stream.sync();
}

} // namespace pipeline_launch_errors_host
