// Whether a batch has been read, asked without a wait.
#include <cstddef>
#include <latch>
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/gate.hpp"

namespace pipeline_batch_read_asked {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;

PinnedBuffer<Word, B> make_word(int) { return PinnedBuffer<Word, B>(1); }

} // namespace

TEST_CASE("BatchRead: is_ready tells without a wait, and one that asks for a held batch again gets it") {
    if (!streams_overlap<B>())
        return;
    CHECK(BatchRead().is_ready());
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        Gate<B> gate;
        bool held = false;
        PinnedBuffer<Word, B> to(1);
        AnyPipeline<PinnedSpan<const Word, B>, B> pipeline(
            Stages{Stage{"copy",
                         [&](Ref stream, const PinnedSpan<const Word, B>& batch, PinnedBuffer<Word, B>& out) {
                             if (held)
                                 gate.hold(stream);
                             copy(stream, out, batch);
                         }},
                   Stage{"keep", [&](Ref stream, const PinnedBuffer<Word, B>& in) { copy(stream, to, in); }}},
            Slots{make_word},
            PipelineOptions{.schedule = schedule, .graphs = {.on_refusal = nullptr}, .steps_per_graph = 4});
        const Inputs<B> inputs(12, 1);
        // Each is found to have been read, though later ones are always in flight, and the host never waits.
        for (std::size_t batch = 0; batch < 12; ++batch) {
            const BatchRead read = pipeline.submit(inputs[batch]);
            while (!read.is_ready()) {
            }
        }
        CHECK(pipeline.submitted() == 12);
        held = true;
        BatchRead last = pipeline.submit(inputs[0]);
        pipeline.flush();
        CHECK_FALSE(last.is_ready());
        gate.open();
        pipeline.finish();
        CHECK(last.is_ready());
        CHECK(to[0] == inputs[0][0]);
    }
}

TEST_CASE("BatchRead: a loop that asks several held batches in turns gets them, in whatever order it asks") {
    for (const std::size_t first :
         {std::size_t{0}, std::size_t{1}}) { // from which one on it asks again and again
        CAPTURE(first);
        std::size_t calls = 0;
        AnyPipeline<PinnedSpan<const Word, B>, B> pipeline(
            Stages{Stage{"copy",
                         [&](Ref stream, const PinnedSpan<const Word, B>& batch, PinnedBuffer<Word, B>& out) {
                             ++calls;
                             copy(stream, out, batch);
                         }},
                   Stage{"keep", [](Ref, const PinnedBuffer<Word, B>&) {}}},
            Slots{make_word},
            PipelineOptions{
                .schedule = Schedule::graphed, .graphs = {.on_refusal = nullptr}, .steps_per_graph = 64});
        const Inputs<B> inputs(3, 1);
        pipeline.submit(inputs[0]).stays();
        pipeline.finish();
        const std::size_t before = calls;
        std::vector<BatchRead> reads;
        for (std::size_t batch = 0; batch < 3; ++batch)
            reads.push_back(pipeline.submit(inputs[batch]));
        for (const BatchRead& read : reads)
            CHECK_FALSE(read.is_ready());
        CHECK(calls == before); // Asked once each, they may wait for others.
        for (int round = 0; round < 2; ++round)
            for (std::size_t batch = first; batch < 3; ++batch)
                (void)reads[batch].is_ready();
        CHECK(calls == before + 3);
        pipeline.finish();
    }
}

TEST_CASE("BatchRead: one that is assigned a batch of after a reset is that batch's") {
    if (!streams_overlap<B>())
        return;
    Gate<B> gate;
    bool held = false;
    AnyPipeline<PinnedSpan<const Word, B>, B> pipeline(
        Stages{Stage{"copy",
                     [&](Ref stream, const PinnedSpan<const Word, B>& batch, PinnedBuffer<Word, B>& out) {
                         if (held)
                             gate.hold(stream);
                         copy(stream, out, batch);
                     }},
               Stage{"keep", [](Ref, const PinnedBuffer<Word, B>&) {}}},
        Slots{make_word}, PipelineOptions{});
    const Inputs<B> inputs(1, 1);
    BatchRead read = pipeline.submit(inputs[0]);
    pipeline.finish();
    CHECK(read.is_ready());
    pipeline.reset();
    held = true;
    read = pipeline.submit(inputs[0]);
    CHECK_FALSE(read.is_ready());
    gate.open();
    pipeline.finish();
    CHECK(read.is_ready());
}

TEST_CASE("BatchRead: is_ready lets a batch wait for others of its graph at first, and submits it when asked "
          "again") {
    std::size_t calls = 0;
    AnyPipeline<PinnedSpan<const Word, B>, B> pipeline(
        Stages{Stage{"copy",
                     [&](Ref stream, const PinnedSpan<const Word, B>& batch, PinnedBuffer<Word, B>& out) {
                         ++calls;
                         copy(stream, out, batch);
                     }},
               Stage{"keep", [](Ref, const PinnedBuffer<Word, B>&) {}}},
        Slots{make_word},
        PipelineOptions{
            .schedule = Schedule::graphed, .graphs = {.on_refusal = nullptr}, .steps_per_graph = 64});
    const Inputs<B> inputs(2, 1);
    pipeline.submit(inputs[0]).stays();
    pipeline.flush();
    const std::size_t before = calls;
    const BatchRead read = pipeline.submit(inputs[1]);
    CHECK_FALSE(read.is_ready());
    CHECK(calls == before);
    (void)read.is_ready();
    CHECK(calls == before + 1);
    pipeline.finish();
}

TEST_CASE("BatchRead: wait within a stage of its pipeline is refused, and waits later") {
    struct Seen {};
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        BatchRead read;
        std::string text;
        bool asks = false;
        bool ready = true;
        std::latch go(1);
        std::latch called(1);
        AnyPipeline<PinnedSpan<const Word, B>, B> pipeline(
            Stages{Stage{"copy",
                         [&](Ref stream, const PinnedSpan<const Word, B>& batch, PinnedBuffer<Word, B>& out) {
                             if (asks)
                                 text = text_of([&] { read.wait(); });
                             copy(stream, out, batch);
                         }},
                   Stage{"look",
                         [&](const PinnedBuffer<Word, B>&, Seen&) {
                             if (called.try_wait())
                                 return;
                             go.wait();
                             text = text_of([&] { read.wait(); });
                             ready = read.is_ready();
                             called.count_down();
                         }},
                   Stage{"keep", [](const Seen&) {}}},
            Slots{make_word, [](int) { return Seen{}; }},
            PipelineOptions{.schedule = schedule, .graphs = {.on_refusal = nullptr}});
        const Inputs<B> inputs(3, 1);
        const auto check_refused = [&] {
            CHECK(text == "wait: the batch's pipeline is in use, by another thread or by the stage that "
                          "asks; wait for a "
                          "batch on the thread that drives its pipeline, between that one's calls");
            text.clear();
        };
        read = pipeline.submit(inputs[0]);
        pipeline.flush();
        go.count_down();
        called.wait(); // Meanwhile no other thread is in a call.
        check_refused();
        CHECK_FALSE(ready);

        if (schedule == Schedule::graphed)
            continue; // A replay calls no callable.
        read = pipeline.submit(inputs[1]);
        asks = true;
        pipeline.submit(inputs[2]).stays();
        pipeline.flush();
        check_refused();
        CHECK_NOTHROW(read.wait());
        CHECK_NOTHROW(pipeline.finish());
    }
}

} // namespace pipeline_batch_read_asked
