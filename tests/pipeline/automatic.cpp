// Schedule::automatic: it gives serial's bits whatever it is trying, ends, and rules out what cannot be replayed.
#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/apart_backend.hpp"
#include "support/error_text.hpp"

namespace pipeline_automatic {

using namespace sluice;
using namespace sluice::test;

namespace {

#if SLUICE_TEST_CUDA
using B = Delayed<Cuda>;
#else
/// Whose graphs are tried, too.
struct Compared : Apart {
    static constexpr bool compares_captures = true;
};
using B = Compared;
#endif
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 48, distinct = 2;
using Late = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{2}, DagStage{5, true, false}>;
/// More than any choice takes: after 4,096 batches the way that is being measured is the last one, of which at most 320 batches
/// warm up, 480 count, and 576 do not.
constexpr std::size_t enough = 5500;
using WithCpu = Dag<B, DagStage{0, true}, DagStage{1, false, true, true}, DagStage{3, true, false}>;

/// A machine that holds a batch up for tens of milliseconds has it seem too long for graphs, which are then not tried, and one that holds
/// up many uses up the batches that a choice may take. So `run`, which returns a choice, is called until each way was tried.
template <class Run>
ScheduleChoice with_all_tried(Run&& run) {
    for (int attempt = 0;; ++attempt) {
        const ScheduleChoice choice = run();
        bool all = true;
        for (const ScheduleTrial& trial : choice.trials)
            all = all && (trial.refused || trial.microseconds > 0);
        if (all || attempt == 20)
            return choice;
    }
}

} // namespace

TEST_CASE("automatic: the same bits as serial, wherever the batches end") {
    const Inputs<B> inputs(distinct, words);
    std::uint64_t seed = 5;
    const auto check = [&]<class D>(D& dag) {
        for (const std::size_t batches : {std::size_t{0}, std::size_t{3}, std::size_t{21}, std::size_t{50},
                                          std::size_t{91}, std::size_t{150}, std::size_t{233}, enough}) {
            CAPTURE(batches);
            // A delay in a capture is a change of the work: with delays, graphs are tried and given up.
            Delay::set({.seed = ++seed, .one_in = seed % 2 == 0 ? 0u : 40u, .microseconds = 200});
            dag.clear();
            {
                auto pipeline =
                    dag.pipeline(dag_options(Schedule::automatic, 3 + static_cast<int>(batches % 2), 0));
                for (std::size_t batch = 0; batch < batches; ++batch)
                    pipeline.submit(inputs[batch % distinct]).stays();
                pipeline.finish();
                // How many it takes depends on how long they take.
                if (batches < enough && !pipeline.choice().decided)
                    CHECK(pipeline.choice().batches == batches);
                else
                    CHECK(pipeline.choice().decided);
                CHECK(pipeline.choice().batches <= batches);
                for (const ScheduleTrial& trial : pipeline.choice().trials)
                    CHECK((!trial.refused || seed % 2 == 1));
            }
            CHECK(dag.memories() == dag.expected(repeating(batches, distinct)));
        }
    };
    Late late(words);
    check(late);
    WithCpu with_cpu(words);
    check(with_cpu);
}

TEST_CASE(
    "automatic: a stage that enqueues something else each time is run as it is called, and never replayed") {
    const ScheduleChoice choice = with_all_tried([] {
        DeviceBuffer<Word, B> total(1);
        BasicStream<B> stream;
        fill_bytes(stream, total, 0);
        stream.sync();
        unsigned calls = 0;
        Pipeline pipeline{Stages{Stage{"make",
                                       [&](Ref s, const Inputs<B>&, DeviceBuffer<Word, B>& out) {
                                           fill(s, out, static_cast<Word>(++calls)); // on the host
                                       }},
                                 Stage{"add",
                                       [&](Ref s, const DeviceBuffer<Word, B>& in) {
                                           ops::step(s.get(), total.data(), in.data(), total.data(), 1);
                                       }}},
                          Slots{[](int) { return DeviceBuffer<Word, B>(1); }},
                          {.schedule = Schedule::automatic}};
        const Inputs<B> inputs(1, 1);
        for (int i = 0; i < static_cast<int>(enough) && !pipeline.choice().decided; ++i)
            pipeline.submit(inputs).stays();
        pipeline.finish();
        REQUIRE(pipeline.choice().decided);
        CHECK(pipeline.choice().schedule != Schedule::graphed);
        CHECK(calls == pipeline.submitted());
        return pipeline.choice();
    });
    for (const ScheduleTrial& trial : choice.trials) {
        CHECK(trial.refused == (trial.schedule == Schedule::graphed));
        CHECK(trial.reason.empty() == !trial.refused);
    }
}

TEST_CASE(
    "automatic: a stage that throws while something is tried leaves a pipeline that goes on after reset") {
    for (const std::size_t at : {std::size_t{2}, std::size_t{17}, std::size_t{70}}) {
        CAPTURE(at);
        CapturableStages<B> stages(words);
        const Inputs<B> inputs(distinct, words), others(distinct, words);
        std::size_t submitted = 0;
        bool fails = true;
        Pipeline pipeline{Stages{Stage{"first", stages.first()},
                                 Stage{"second",
                                       [&, last = stages.last(1)](Ref stream, DeviceBuffer<Word, B>& in) {
                                           if (fails && submitted >= at)
                                               throw std::runtime_error("it gives up");
                                           last(stream, in);
                                       }}},
                          Slots{stages.make_cells()},
                          {.schedule = Schedule::automatic}};
        const std::string text = text_of([&] {
            for (; submitted < 1000; ++submitted)
                pipeline.submit(inputs[submitted % distinct]).stays();
            // On a slow machine graphs are tried by then, which call no stage for what they know.
            for (; submitted < 1000 + distinct; ++submitted)
                pipeline.submit(others[submitted % distinct]).stays();
            pipeline.finish();
        });
        CHECK(contains(text, "it gives up"));
        CHECK(contains(text, "second"));
        CHECK(pipeline.failed());
        pipeline.reset();
        stages.clear();
        fails = false;
        for (std::size_t batch = 0; batch < 10 || (batch < enough && !pipeline.choice().decided); ++batch)
            pipeline.submit(inputs[batch % distinct]).stays();
        pipeline.finish();
        CHECK(pipeline.choice().decided);
        const std::size_t batches = pipeline.submitted();
        CHECK(stages.values() == expected_memories(2, words, repeating(batches, distinct)));
    }
}

TEST_CASE("automatic: what was chosen is what batches then run under") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(1, words);
    for (const int microseconds : {0, 0, 50, 200}) {
        CAPTURE(microseconds);
        CapturableStages<B> stages(words);
        Pipeline pipeline{
            Stages{Stage{"first", stages.first()},
                   Stage{"second",
                         [microseconds, last = stages.last(1)](Ref stream, DeviceBuffer<Word, B>& in) {
                             last(stream, in);
                             ops::spin(stream.get(), static_cast<unsigned>(microseconds));
                         }}},
            Slots{stages.make_cells()},
            {.schedule = Schedule::automatic}};
        for (std::size_t i = 0; i < enough && !pipeline.choice().decided; ++i)
            pipeline.submit(inputs[0]).stays();
        REQUIRE(pipeline.choice().decided);
        const auto replays_of = [&](std::uint64_t batches) {
            const std::uint64_t before = pipeline.graph_counters().replays;
            for (std::uint64_t i = 0; i < batches; ++i)
                pipeline.submit(inputs[0]).stays();
            return pipeline.graph_counters().replays - before;
        };
        (void)replays_of(64); // until all graphs are there
        const bool graphed = pipeline.choice().schedule == Schedule::graphed;
        CHECK(replays_of(32) == (!graphed ? 0u : pipeline.choice().graph_each_stage ? 64u : 32u));
        pipeline.finish();
    }
}

TEST_CASE("automatic: where each batch is finished from some time on, what it says is what runs") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(1, words);
    CapturableStages<B> stages(words);
    Pipeline pipeline{Stages{Stage{"first", stages.first()}, Stage{"second", stages.last(1)}},
                      Slots{stages.make_cells()},
                      {.schedule = Schedule::automatic}};
    const auto is_serial = [&] { return pipeline.stream(0).get() == pipeline.stream(1).get(); };
    while (!is_serial() && !pipeline.choice().decided)
        pipeline.submit(inputs[0]).stays();
    REQUIRE_FALSE(pipeline.choice().decided); // serial is the last one that is tried
    while (!pipeline.choice().decided && pipeline.submitted() < 2 * enough) {
        CHECK(is_serial() == (pipeline.choice().schedule == Schedule::serial));
        pipeline.submit(inputs[0]).stays();
        pipeline.finish();
    }
    REQUIRE(pipeline.choice().decided);
    CHECK(is_serial() == (pipeline.choice().schedule == Schedule::serial));
}

TEST_CASE("automatic: results that are read back are no change of the work, and none is lost") {
    Delay::set({.one_in = 0});
    const ScheduleChoice choice = with_all_tried([] {
        ScheduleChoice chosen;
        CapturableStages<B> stages(words);
        const Inputs<B> inputs(distinct, words);
        std::vector<Word> results;
        std::size_t batches = 0;
        Readback<Word, B> readback(words, [&](std::size_t batch, std::span<const Word> values) {
            CHECK(batch * words == results.size());
            results.insert(results.end(), values.begin(), values.end());
        });
        {
            Pipeline pipeline{
                Stages{Stage{"first", stages.first()},
                       Stage{"second",
                             [&](Ref stream, DeviceBuffer<Word, B>& in) { readback.push(stream, in); }}},
                Slots{stages.make_cells()},
                {.schedule = Schedule::automatic}};
            for (; batches < enough && !pipeline.choice().decided; ++batches)
                pipeline.submit(inputs[batches % distinct]).stays();
            pipeline.finish();
            CHECK(pipeline.choice().decided);
            chosen = pipeline.choice();
            readback.finish();
        }
        const auto expected = chain_results(1, words, repeating(batches, distinct));
        CHECK(results == std::vector<Word>(expected.begin(),
                                           expected.begin() + static_cast<std::ptrdiff_t>(batches * words)));
        return chosen;
    });
    for (const ScheduleTrial& trial : choice.trials) {
        CAPTURE(std::string(to_string(trial.schedule)));
        CHECK_FALSE(trial.refused);
        CHECK(trial.microseconds > 0);
    }
}

TEST_CASE("automatic: a first capture that is unlike all others rules nothing out, a work that goes on "
          "changing does") {
    if (detail::ObjectChecks<B>::on)
        return; // A checked pipeline throws where work changes.
    Delay::set({.one_in = 0});
    for (const bool goes_on : {false, true}) {
        CAPTURE(goes_on);
        const ScheduleChoice choice = with_all_tried([&] {
            CapturableStages<B> stages(words);
            DeviceBuffer<unsigned char, B> scratch(1);
            unsigned char captures = 0;
            const auto first = [&, work = stages.first()](Ref stream, PinnedSpan<const Word, B> in,
                                                          DeviceBuffer<Word, B>& out) {
                unsigned char value = 0;
                if (B::is_capturing(stream.get())) {
                    ++captures;
                    value = goes_on ? captures : captures == 1;
                }
                fill_bytes(stream, scratch, value);
                work(stream, in, out);
            };
            const Inputs<B> inputs(distinct, words);
            Pipeline pipeline{Stages{Stage{"first", first}, Stage{"second", stages.last(1)}},
                              Slots{stages.make_cells()},
                              {.schedule = Schedule::automatic}};
            while (!pipeline.choice().decided && pipeline.submitted() < enough)
                pipeline.submit(inputs[0]).stays();
            REQUIRE(pipeline.choice().decided);
            pipeline.finish();
            return pipeline.choice();
        });
        for (const ScheduleTrial& trial : choice.trials) {
            CAPTURE(trial.reason);
            if (trial.schedule == Schedule::graphed)
                CHECK(trial.refused == goes_on);
            CHECK((trial.refused || trial.microseconds > 0));
        }
    }
}

TEST_CASE("comparisons: the first replays capture again, and replay what has changed") {
    GraphCapture<NoKey, B> graphs{{.check = false, .comparisons = 2}};
    const BasicStream<B> stream;
    DeviceBuffer<Word, B> cell(1);
    PinnedBuffer<Word, B> seen(1);
    const auto run = [&](Word value) {
        graphs.run(stream, [&](Ref s) { fill(s, cell, value); });
        copy(stream, seen, cell);
        stream.sync();
        return seen[0];
    };
    CHECK(run(1) == 1); // eager
    CHECK(run(1) == 1); // captured
    CHECK(run(1) == 1); // compared: the same
    CHECK(graphs.counters().changes == 0);
    CHECK(run(7) == 7); // compared: another value
    CHECK(graphs.counters().comparisons == 2);
    CHECK(graphs.counters().changes == 1);
    CHECK(graphs.counters().later_changes == 1);
    for (int same = 0; same < 7; ++same)
        CHECK(run(7) == 7);
    CHECK(run(8) == 8); // from a change on, four times as many are compared
    CHECK(graphs.counters().changes == 2);
    for (int same = 0; same < 8; ++same)
        CHECK(run(8) == 8);
    CHECK(run(9) == 8); // no longer compared, as said
    CHECK(graphs.counters().comparisons == 18);
    CHECK(graphs.counters().replays == 20);

    graphs.recapture(stream, {}, [&](Ref s) { fill(s, cell, Word{3}); });
    CHECK(run(4) == 4); // the first comparison of what is captured anew
    CHECK(graphs.counters().changes == 3);
    CHECK(graphs.counters().later_changes == 2);
}

TEST_CASE("comparisons and checks: a readback's places are no change") {
    std::vector<Word> results;
    for (const bool check : {false, true}) {
        Readback<Word, B> readback(
            1, [&](std::size_t, std::span<const Word> values) { results.push_back(values[0]); });
        GraphCapture<NoKey, B> graphs{check ? GraphOptions{.check = true}
                                            : GraphOptions{.check = false, .comparisons = 3}};
        const BasicStream<B> stream;
        DeviceBuffer<Word, B> cell(1);
        for (int i = 0; i < 6; ++i) {
            graphs.run(stream, [&](Ref s) {
                fill(s, cell, Word{5});
                readback.push(s, cell);
            });
        }
        readback.finish();
        CHECK(graphs.counters().changes == 0);
        CHECK(graphs.counters().replays == 5);
    }
    CHECK(results == std::vector<Word>(12, 5));
}

TEST_CASE("automatic: a CPU stage goes on after a schedule that does not signal its thread") {
    Delay::set({.one_in = 0});
    struct Nothing {};
    std::size_t naps = 0;
    // Overlapped takes a third of serial's time, so that it is gone back to after the others.
    const auto spin = [](Ref stream) { ops::spin(stream.get(), 300); };
    Pipeline pipeline{Stages{Stage{"first", [&](Ref stream, const Word&, Nothing&) { spin(stream); }},
                             Stage{"nap",
                                   [&](const Nothing&, Word& out) {
                                       std::this_thread::sleep_for(std::chrono::microseconds(300));
                                       out = static_cast<Word>(++naps);
                                   }},
                             Stage{"last", [&](Ref stream, const Word&) { spin(stream); },
                                   StageOptions<B>{.graphed = false}}},
                      Slots{[](int) { return Nothing{}; }, [](int) { return Word{}; }},
                      {.schedule = Schedule::automatic, .slots = 3}};
    for (int i = 0; i < static_cast<int>(enough) && !pipeline.choice().decided; ++i)
        pipeline.submit(Word{1});
    REQUIRE(pipeline.choice().decided);
    for (int i = 0; i < 12; ++i)
        pipeline.submit(Word{1});
    pipeline.finish();
    CHECK(naps == pipeline.submitted());
}

TEST_CASE("automatic: what was chosen is asked of pipelines that choose") {
    CapturableStages<B> stages(words);
    const auto make = [&](PipelineOptions options) {
        return Pipeline{Stages{Stage{"first", stages.first()}, Stage{"second", stages.last(1)}},
                        Slots{stages.make_cells()}, options};
    };
    auto pipeline = make({.schedule = Schedule::serial});
    CHECK(contains(text_of([&] { (void)pipeline.choice(); }),
                   "choice: nothing is chosen; the pipeline was made with Schedule::serial, not "
                   "Schedule::automatic"));
    auto other = make({.schedule = Schedule::automatic, .launch_blocking = true});
    CHECK(other.choice().decided);
    CHECK(other.choice().schedule == Schedule::overlapped);
}

} // namespace pipeline_automatic
