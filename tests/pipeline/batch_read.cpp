// When a batch of the caller's own may be filled again.
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "pipeline/thrown.hpp"
#include "support/delayed_backend.hpp"
#include "support/latch.hpp"

namespace pipeline_batch_read {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 16;
constexpr std::size_t count = 30;
// The batch is read by the first stage, and by the last one, three behind it; and by a CPU stage.
using Late = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{2}, DagStage{5, true, false}>;
using Cpu = Dag<B, DagStage{0, true}, DagStage{1, true, false, true}>;

void load(std::size_t batch, PinnedBuffer<Word, B>& into) {
    for (std::size_t i = 0; i < words; ++i)
        into[i] = input_word(batch, i);
}

template <class Check>
void for_each_way(Check&& check) {
    std::uint64_t seed = 50;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 3}) {
            for (const int steps : {0, 4, 16}) {
                if (steps > 0 && schedule != Schedule::graphed)
                    continue;
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(slots);
                CAPTURE(steps);
                Delay::set({.seed = ++seed, .one_in = 4, .microseconds = 300});
                check.template operator()<Late>(dag_options(schedule, slots, steps));
                check.template operator()<Cpu>(dag_options(schedule, slots, steps));
            }
        }
    }
}

} // namespace

TEST_CASE("BatchRead: one batch is filled again and again, with a wait, or with what is returned dropped") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        PinnedBuffer<Word, B> batch(words);
        for (std::size_t step = 0; step < count; ++step) {
            load(step, batch);
            if (step % 3 == 0)
                pipeline.submit(batch).wait();
            else if (step % 3 == 1)
                const BatchRead dropped = pipeline.submit(batch);
            else
                const BatchRead dropped =
                    pipeline.submit(std::as_const(batch)); // constant here, not elsewhere
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches_from(0, count)));
    });
}

TEST_CASE("BatchRead: two batches in turns, each filled once it has been read") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        PinnedBuffer<Word, B> batch[2] = {PinnedBuffer<Word, B>(words), PinnedBuffer<Word, B>(words)};
        BatchRead read[2];
        for (std::size_t step = 0; step < count; ++step) {
            read[step % 2].wait();
            load(step, batch[step % 2]);
            read[step % 2] = pipeline.submit(batch[step % 2]);
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches_from(0, count)));
    });
}

TEST_CASE("BatchRead: a batch is waited for when asked, however late") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        std::vector<PinnedBuffer<Word, B>> batches;
        for (std::size_t step = 0; step < 10; ++step) {
            batches.emplace_back(words);
            load(step, batches.back());
        }
        std::vector<BatchRead> reads;
        for (const auto& batch : batches)
            reads.push_back(pipeline.submit(batch));
        for (std::size_t step = 0; step < 10; ++step) {
            reads[step].wait();
            reads[step].wait(); // there is nothing more to wait for
            load(99, batches[step]);
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(batches_from(0, 10)));
    });
}

TEST_CASE("BatchRead: outlives its pipeline, and a reset") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        PinnedBuffer<Word, B> batch(words);
        load(0, batch);
        BatchRead kept, moved;
        {
            auto pipeline = dag.pipeline(options);
            BatchRead before = pipeline.submit(batch);
            pipeline.reset();
            before.wait();
            dag.clear();
            kept = pipeline.submit(batch);
            moved = std::move(kept);
            kept = pipeline.submit(batch);
        }
        kept.wait();
        CHECK(dag.memories() == dag.expected({0, 0}));
    });
}

TEST_CASE("BatchRead: of before a reset does not wait for the batch of its number that comes after") {
    ScopedLatch latch;
    bool waits = false;
    Stage only{"only", [&, handle = latch.handle()](HostStreamRef stream, const PinnedBuffer<int, Host>&) {
                   if (waits)
                       stream.enqueue([handle] { handle.pass(); });
               }};
    Pipeline pipeline{Stages{only}, Slots{}, {}};
    PinnedBuffer<int, Host> batch(1);
    BatchRead before = pipeline.submit(batch);
    pipeline.reset();
    waits = true;
    BatchRead after = pipeline.submit(batch);
    before.wait();
    CHECK_FALSE(after.is_ready());
    latch.open();
    after.wait();
}

TEST_CASE("BatchRead: with lanes, a batch has been read when its own lane says so") {
    Delay::set({.one_in = 0});
    PinnedBuffer<Word, B> history(64 * words), memories(2);
    for (std::size_t i = 0; i < history.size(); ++i)
        history[i] = 0;
    memories[0] = memories[1] = 0;
    const auto only = [&](BasicStreamRef<B> stream, PinnedSpan<const Word, B> in) {
        static std::size_t number = 0;
        const std::size_t batch = number++;
        ops::spin(stream.get(), batch % 2 == 0 ? 3000 : 10);
        ops::step(stream.get(), history.data() + batch % 64 * words, in.data(), memories.data() + batch % 2,
                  1);
    };
    Pipeline pipeline{Stages{Stage{"only", only, StageOptions<B>{.graphed = false, .lanes = 2}}}, Slots{},
                      PipelineOptions{.slots = 3}};
    PinnedBuffer<Word, B> batches[4] = {PinnedBuffer<Word, B>(words), PinnedBuffer<Word, B>(words),
                                        PinnedBuffer<Word, B>(words), PinnedBuffer<Word, B>(words)};
    BatchRead reads[4];
    for (std::size_t step = 0; step < 4; ++step) {
        load(step, batches[step]);
        reads[step] = pipeline.submit(std::as_const(batches[step]));
    }
    // Batch 3 is in the slot of batch 0, on the other lane, which is ahead.
    reads[0].wait();
    CHECK(history[0] != 0);
    pipeline.finish();
}

TEST_CASE(
    "BatchRead: a stage that throws within the wait fails the pipeline once, with its stage and batch") {
    const Inputs<B> inputs(4, words);
    Delay::set({.one_in = 0});
    int calls = 0;
    const auto first = [](BasicStreamRef<B>, PinnedSpan<const Word, B>, int&) {};
    const auto last = [&](BasicStreamRef<B>, PinnedSpan<const Word, B>, int&) {
        ++calls;
        throw std::runtime_error("no weights");
    };
    for (const bool asked : {true, false}) {
        calls = 0;
        PinnedBuffer<Word, B> batch(words);
        Pipeline pipeline{Stages{Stage{"first", first}, Stage{"last", last}}, Slots{[](int) { return 0; }},
                          dag_options(Schedule::graphed, 2, 4)};
        if (asked) {
            BatchRead read = pipeline.submit(std::as_const(batch));
            const auto error = caught_error([&] { read.wait(); });
            REQUIRE(error);
            CHECK(error->stage() == "last");
            CHECK(error->batch() == 0);
        } else {
            const BatchRead gone = pipeline.submit(batch);
        }
        CHECK(pipeline.failed());
        CHECK(calls == 1);
        if (!asked) {
            // The destructor could not throw it: the next call does, once.
            const Caught error([&] { pipeline.submit(batch).wait(); });
            REQUIRE(error);
            CHECK(error->stage() == "last");
            CHECK(error->batch() == 0);
            CHECK(error.text() == "stage 'last', batch 0: its callable threw: no weights");
            CHECK(error.nests<std::runtime_error>(
                [](const auto& nested) { return std::string(nested.what()) == "no weights"; }));
        }
        CHECK(contains_all(text_of([&] { pipeline.finish(); }),
                           {"finish: the pipeline has failed before and needs a reset() first",
                            "stage 'last', batch 0: its callable threw: no weights"}));
    }
}

TEST_CASE(
    "Contract 5: a fault that the destructor of a BatchRead met is thrown by the next wait, or forgotten "
    "by reset") {
    Delay::set({.one_in = 0});
    bool throws = true;
    const auto only = [&](BasicStreamRef<B>, PinnedSpan<const Word, B>) {
        if (throws)
            throw std::runtime_error("no weights");
    };
    for (const bool reset : {false, true}) {
        throws = true;
        PinnedBuffer<Word, B> batch(words);
        Pipeline pipeline{Stages{Stage{"only", only}}, Slots{}, dag_options(Schedule::graphed, 2, 4)};
        BatchRead later = pipeline.submit(std::as_const(batch));
        { const BatchRead gone = pipeline.submit(batch); }
        CHECK(pipeline.failed());
        if (reset) {
            pipeline.reset();
            throws = false;
            CHECK_NOTHROW(pipeline.submit(batch).wait());
            CHECK_NOTHROW(pipeline.finish());
        } else {
            const auto error = caught_error([&] { later.wait(); });
            REQUIRE(error);
            CHECK(error->stage() == "only");
            CHECK(error->batch() == 0);
        }
    }
}

} // namespace pipeline_batch_read
