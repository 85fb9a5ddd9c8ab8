// When stages worked on batches, as PipelineOptions::timed_batches has it noted.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/apart_backend.hpp"
#include "support/error_text.hpp"

namespace pipeline_stage_times {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t batches = 12;
constexpr unsigned first_takes = 2000, second_takes = 4000; // microseconds

struct Nothing {};
struct Number {
    std::size_t value;
};

auto slow_stages() {
    return Stages{
        Stage{"first", [](Ref stream, const Number&, Nothing&) { ops::spin(stream.get(), first_takes); }},
        Stage{"second", [](Ref stream, const Nothing&) { ops::spin(stream.get(), second_takes); }}};
}
Nothing make_nothing(int) { return {}; }

template <class Pipe>
std::vector<StageTime> run(Pipe& pipeline, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
        pipeline.submit(Number{0}); // the same each time, so that graphs are replayed
    pipeline.finish();
    return pipeline.stage_times();
}

double length(const StageTime& time) { return time.end - time.begin; }

} // namespace

TEST_CASE(
    "stage times: each stage of each batch, as long as its work, in the order of the stages and batches") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        CAPTURE(std::string(to_string(schedule)));
        Pipeline pipeline{slow_stages(), Slots{make_nothing}, {.schedule = schedule, .timed_batches = 100}};
        const std::vector<StageTime> times = run(pipeline, batches);
        REQUIRE(times.size() == 2 * batches);
        for (std::size_t stage = 0; stage < 2; ++stage) {
            for (std::size_t batch = 0; batch < batches; ++batch) {
                const StageTime& time = times[stage * batches + batch];
                CHECK(time.stage == stage);
                CHECK(time.batch == batch);
                // No shorter than its work; how much longer is the machine's affair.
                CHECK(length(time) >= 0.9 * (stage == 0 ? first_takes : second_takes));
                CHECK(time.begin >= 0);
                // In stream order, but for what two clocks differ by.
                if (batch > 0)
                    CHECK(time.begin >= times[stage * batches + batch - 1].end - 1);
            }
        }
        for (std::size_t batch = 0; batch < batches; ++batch)
            CHECK(times[batches + batch].begin >= times[batch].end - 500);
        // The whole takes no less than its longest part.
        CHECK(times.back().end - times.front().begin >= 0.9 * batches * second_takes);
    }
}

TEST_CASE("stage times: stages of successive batches overlap under overlapped, and never under serial") {
    const auto overlaps = [](Schedule schedule) {
        Pipeline pipeline{slow_stages(), Slots{make_nothing}, {.schedule = schedule, .timed_batches = 100}};
        const std::vector<StageTime> times = run(pipeline, batches);
        std::size_t count = 0;
        for (std::size_t batch = 0; batch + 1 < batches; ++batch) {
            const StageTime& next = times[batch + 1];       // the first stage's
            const StageTime& same = times[batches + batch]; // the second stage's
            count += next.begin + 500 < same.end && same.begin + 500 < next.end ? 1U : 0U;
        }
        return count;
    };
    CHECK(overlaps(Schedule::serial) == 0);
    CHECK(overlaps(Schedule::overlapped) > 0);
}

TEST_CASE("stage times: within graphs of whole steps, of their latest runs") {
    for (const int steps : {1, 4}) {
        CAPTURE(steps);
        Pipeline pipeline{slow_stages(),
                          Slots{make_nothing},
                          {.schedule = Schedule::graphed, .steps_per_graph = steps, .timed_batches = 100}};
        const std::vector<StageTime> times = run(pipeline, 64);
        std::vector<StageTime> graphs, stages;
        for (const StageTime& time : times)
            (time.stage == 2 ? graphs : stages).push_back(time);
        CHECK(graphs.size() == pipeline.graph_counters().replays);
        REQUIRE(graphs.size() > 2);
        REQUIRE(stages.size() >= 16);
        std::size_t within = 0;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            const StageTime& time = stages[i];
            CHECK(length(time) >= 0.9 * (time.stage == 0 ? first_takes : second_takes));
            // The last batches, all of them.
            const bool last = i + 1 == stages.size() || stages[i + 1].stage != time.stage;
            CHECK((last ? time.batch == 63 : stages[i + 1].batch == time.batch + 1));
            for (const StageTime& graph : graphs)
                within += time.begin > graph.begin - 100 && time.end < graph.end + 100 ? 1U : 0U;
        }
        CHECK(within >=
              stages.size() - 2 * (static_cast<std::size_t>(steps) + 2)); // all but the drained ones
        pipeline.reset();
        CHECK(pipeline.stage_times().empty());
    }
}

TEST_CASE("stage times: of each stage's graph") {
    Pipeline pipeline{slow_stages(),
                      Slots{make_nothing},
                      {.schedule = Schedule::graphed, .graph_each_stage = true, .timed_batches = 100}};
    const std::vector<StageTime> times = run(pipeline, batches);
    REQUIRE(times.size() == 2 * batches);
    CHECK(pipeline.graph_counters().replays > 0);
    for (const StageTime& time : times)
        CHECK(length(time) >= 0.9 * (time.stage == 0 ? first_takes : second_takes));
}

namespace {

template <class A>
void check_cpu_stage_times() {
    const auto nap = [](const Nothing&) {
        std::this_thread::sleep_for(std::chrono::microseconds(second_takes));
    };
    Pipeline pipeline{Stages{Stage{"first", [](BasicStreamRef<A> stream, const Number&,
                                               Nothing&) { ops::spin(stream.get(), first_takes); }},
                             Stage{"nap", nap}},
                      Slots{make_nothing},
                      {.timed_batches = 100}};
    const std::vector<StageTime> times = run(pipeline, batches);
    REQUIRE(times.size() == 2 * batches);
    for (std::size_t batch = 0; batch < batches; ++batch) {
        CHECK(times[batches + batch].stage == 1);
        CHECK(length(times[batches + batch]) >= second_takes);
        CHECK(times[batches + batch].begin >= times[batch].end - 1000);
    }
}

} // namespace

TEST_CASE("stage times: a CPU stage's by its thread, on the same clock") {
    check_cpu_stage_times<B>();
#if !defined(SLUICE_TEST_CUDA)
    check_cpu_stage_times<Apart>(); // on a thread of its own, as beside a device's streams
#endif
}

TEST_CASE("stage times: the last batches alone, none after a reset, and none where nothing is noted") {
    Pipeline pipeline{slow_stages(), Slots{make_nothing}, {.timed_batches = 5}};
    const std::vector<StageTime> times = run(pipeline, batches);
    REQUIRE(times.size() == 10);
    for (std::size_t i = 0; i < 5; ++i)
        CHECK(times[i].batch == batches - 5 + i);
    pipeline.reset();
    CHECK(pipeline.stage_times().empty());

    Pipeline plain{slow_stages(), Slots{make_nothing}};
    CHECK(contains(text_of([&] { (void)plain.stage_times(); }), "PipelineOptions::timed_batches"));
    CHECK(contains(text_of([&] { Pipeline bad(slow_stages(), Slots{make_nothing}, {.timed_batches = -1}); }),
                   "timed_batches is -1; expected 0 to 1048576"));
    CHECK(pipeline.stage_name(1) == "second");
    CHECK_FALSE(pipeline.is_cpu_stage(0));
    CHECK(contains(text_of([&] { (void)pipeline.stage_name(2); }),
                   "the name of stage 2 was asked for, of a pipeline of 2 stages"));
}

TEST_CASE("stage times: of fast batches, those that were noted by all") {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        Pipeline pipeline{
            Stages{Stage{"first", [](Ref stream, const Number&, Nothing&) { ops::spin(stream.get(), 1); }},
                   Stage{"second", [](Ref stream, const Nothing&) { ops::spin(stream.get(), 1); }}},
            Slots{make_nothing},
            {.schedule = schedule, .timed_batches = 12}};
        std::vector<StageTime> stages;
        for (const StageTime& time : run(pipeline, 500)) {
            if (time.stage < 2)
                stages.push_back(time);
        }
        const std::vector<StageTime> submits = pipeline.submit_times();
        REQUIRE(stages.size() >= 12);
        const std::size_t count = stages.size() / 2;
        REQUIRE(stages.size() == 2 * count);
        CHECK(count <= 12);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(stages[i].batch == stages[0].batch + i);
            CHECK(stages[count + i].batch == stages[i].batch);
        }
        CHECK(stages[0].batch >= 100); // Not of the first lots, which are always noted.
        REQUIRE_FALSE(submits.empty());
        // Of the same lot; where a busy machine had two lots noted in a row, of some batches later.
        CHECK(submits.front().batch <= stages[count - 1].batch);
        CHECK(submits.back().batch >= stages[count - 1].batch);
    }
}

// Of several batches, since a busy machine may let the loop sleep until its batch has been read anyway.
TEST_CASE("stage times: what the loop waited before a submit for its batch to be read") {
    for (const bool waits : {false, true}) {
        Pipeline pipeline{Stages{Stage{"first", [](Ref stream, PinnedSpan<const Word, B>,
                                                   Nothing&) { ops::spin(stream.get(), first_takes); }},
                                 Stage{"second", [](Ref, const Nothing&) {}}},
                          Slots{make_nothing},
                          {.timed_batches = 20}};
        const PinnedBuffer<Word, B> batch(1);
        for (int i = 0; i < 21; ++i) {
            BatchRead read = pipeline.submit(batch.span());
            if (waits)
                read.wait();
            else
                read.stays();
        }
        pipeline.finish();
        REQUIRE(pipeline.submit_times().size() == 20);
        double longest = 0;
        for (const StageTime& submit : pipeline.submit_times())
            longest = std::max(longest, submit.reading);
        if (waits)
            CHECK(longest > first_takes / 2.0);
        else
            CHECK(longest == 0);
    }
}

TEST_CASE(
    "stage times: a loop that fills batches in turns waits for the stages, not for its batch to be read") {
    Pipeline pipeline{Stages{Stage{"first", [](Ref stream, PinnedSpan<const Word, B>,
                                               Nothing&) { ops::spin(stream.get(), first_takes); }},
                             Stage{"second", [](Ref, const Nothing&) {}}},
                      Slots{make_nothing},
                      {.timed_batches = 4}};
    const PinnedBuffer<Word, B> buffers[2]{PinnedBuffer<Word, B>(1), PinnedBuffer<Word, B>(1)};
    BatchRead read[2];
    for (std::size_t i = 0; i < 8; ++i) {
        read[i % 2].wait();
        read[i % 2] = pipeline.submit(buffers[i % 2].span());
    }
    pipeline.finish();
    double waited = 0;
    for (const StageTime& submit : pipeline.submit_times()) {
        CHECK(submit.reading == 0);
        waited += submit.results;
    }
    CHECK(waited > 0);
}

TEST_CASE("stage times: what submit waits for a CPU stage to have read a slot's numbers is no launching") {
    Pipeline pipeline{
        Stages{
            Stage{"number", [](Ref, const Number& in, Number& out) { out.value = in.value; }},
            Stage{"slow", [](const Number&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }}},
        Slots{[](int) { return Number{0}; }},
        {.timed_batches = 4}};
    run(pipeline, batches);
    const std::vector<StageTime> submits = pipeline.submit_times();
    REQUIRE(submits.size() == 4);
    double took = 0, waited = 0;
    for (const StageTime& submit : submits) {
        took += length(submit);
        waited += submit.waited;
    }
    CHECK(waited > 0);
    CHECK(waited <= took);
}

TEST_CASE("stage times: what a submit waited for results to arrive") {
    for (const int places : {1, 8}) {
        CAPTURE(places);
        DeviceBuffer<Word, B> value(1);
        const BasicStream<B> stream;
        fill(stream, value, Word{1});
        stream.sync();
        Readback<Word, B> results(
            1, [](auto, auto) {}, places);
        Pipeline pipeline{Stages{Stage{"only",
                                       [&](Ref on, const Number&) {
                                           ops::spin(on.get(), 10 * first_takes);
                                           results.push(on, value);
                                       }}},
                          Slots{},
                          {.timed_batches = 6}};
        for (int i = 0; i < 6; ++i)
            pipeline.submit(Number{0});
        pipeline.finish();
        REQUIRE(pipeline.submit_times().size() == 6);
        double waited = 0; // in all: a busy machine may let this thread sleep until a result is there
        for (const StageTime& submit : pipeline.submit_times())
            waited += submit.waited;
        CHECK((places == 1) == (waited > 0));
    }
}

TEST_CASE("stage times: nothing is made while they are noted") {
    Pipeline pipeline{slow_stages(), Slots{make_nothing}, {.timed_batches = 4}};
    for (int i = 0; i < 6; ++i)
        pipeline.submit(Number{0});
    const auto events = B::counts().events.created.load();
    const auto streams = B::counts().streams.created.load();
    for (int i = 0; i < 10; ++i)
        pipeline.submit(Number{0});
    pipeline.finish();
    CHECK(B::counts().events.created.load() == events);
    CHECK(B::counts().streams.created.load() == streams);
    CHECK(pipeline.stage_times().size() == 8);
}

TEST_CASE("stage times: two events for each batch of two windows are made for a stage, and for graphs of "
          "whole steps") {
    const auto events_for_times = [](PipelineOptions options) {
        const auto before = B::counts().events.created.load();
        const Pipeline without{slow_stages(), Slots{make_nothing}, options};
        const auto between = B::counts().events.created.load();
        options.timed_batches = 5;
        const Pipeline with{slow_stages(), Slots{make_nothing}, options};
        return B::counts().events.created.load() - between - (between - before);
    };
    CHECK(events_for_times({}) == 2 * 20);
    CHECK(events_for_times({.schedule = Schedule::graphed}) == 3 * 20);
}

} // namespace pipeline_stage_times
