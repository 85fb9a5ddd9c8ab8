// A pipeline behind a type that says only what it takes.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sluice/pipeline/any_pipeline.hpp>

#include "pipeline/capturable.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_any_pipeline {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Batch = PinnedBuffer<Word, B>;
using Memories = CapturableStages<B>;
constexpr std::size_t words = 64;

// A class with a pipeline as its member.
class Trainer {
public:
    explicit Trainer(const PipelineOptions& options)
        : pipeline_{Stage{"first", [this](Ref stream, const Batch& in,
                                          Memories::Cells& to) { memories_.first()(stream, in.span(), to); }},
                    Stage{"last", [this](Ref stream, Memories::Cells& in) { memories_.last(1)(stream, in); }},
                    memories_.make_cells(), options} {}
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;
    AnyPipeline<Batch, B>& pipeline() { return pipeline_; }
    auto values() { return memories_.values(); }

private:
    Memories memories_{words};
    AnyPipeline<Batch, B> pipeline_;
};

auto make_source(std::size_t count) {
    return Source{[](int) { return Batch(words); },
                  [](std::size_t index, Batch& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index, i);
                  },
                  SourceOptions<B>{.workers = 2, .slots = 3, .batches = count}};
}

template <class Check>
void for_each_schedule(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        Delay::set({.seed = 41, .one_in = 4, .microseconds = 300});
        check(PipelineOptions{.schedule = schedule});
    }
}

} // namespace

TEST_CASE(
    "AnyPipeline: a source's batches, and what they hold, are read before their slots are filled again") {
    for_each_schedule([](const PipelineOptions& options) {
        constexpr std::size_t count = 30;
        Trainer trainer(options);
        auto source = make_source(count);
        for (std::size_t batch = 0; batch < count; ++batch) {
            auto next = source.next();
            if (batch % 3 == 0)
                trainer.pipeline().submit(next);
            else if (batch % 3 == 1)
                trainer.pipeline().submit(*next);
            else
                trainer.pipeline().submit(*std::as_const(next));
        }
        trainer.pipeline().finish();
        CHECK(trainer.pipeline().submitted() == count);
        CHECK(trainer.values() == expected_memories(2, words, batches_from(0, count)));
    });
}

TEST_CASE("AnyPipeline: a batch of the caller's own is read before it is filled again") {
    for_each_schedule([](const PipelineOptions& options) {
        Trainer trainer(options);
        Batch batch(words);
        for (std::size_t index = 0; index < 20; ++index) {
            for (std::size_t i = 0; i < words; ++i)
                batch[i] = input_word(index, i);
            trainer.pipeline().submit(batch).wait();
        }
        trainer.pipeline().finish();
        CHECK(trainer.values() == expected_memories(2, words, batches_from(0, 20)));
    });
}

TEST_CASE("AnyPipeline: gives the results of a source's batches in order, of the type that is named") {
    for_each_schedule([](const PipelineOptions& options) {
        constexpr std::size_t count = 20;
        AnyPipeline<Batch, B> pipeline{Stages{Stage{"beside", [](Ref, const Batch&) {}},
                                              Stage{"last",
                                                    [](const Batch& in, Batch& out) {
                                                        for (std::size_t i = 0; i < words; ++i)
                                                            out[i] = in[i] + 1;
                                                    }}},
                                       Slots{[](int) { return Batch(words); }}, options};
        auto source = make_source(count);
        std::size_t index = 0;
        for (const Batch& result : pipeline.run<Batch>(source)) {
            CHECK(result[words - 1] == input_word(index, words - 1) + 1);
            ++index;
        }
        CHECK(index == count);
        CHECK(contains(text_of([&] { (void)pipeline.run<int>(source); }),
                       "run: the last stage does not make what was asked for"));
    });
    AnyPipeline<int, B> nothing{Stages{Stage{"only", [](Ref, const int&) {}}}, Slots{}};
    std::vector<int> batches{1, 2, 3};
    CHECK_THROWS_AS((void)nothing.run<int>(batches), Error);
}

TEST_CASE("AnyPipeline: moved, it goes on; options and streams are the pipeline's") {
    AnyPipeline<int, B> pipeline{Stages{Stage{"only", [](Ref, const int&) {}}}, Slots{}, {.slots = 3}};
    AnyPipeline<int, B> moved = std::move(pipeline);
    moved.submit(1);
    moved.finish();
    CHECK(moved.options().slots == 3);
    CHECK(moved.stream(0).get() != typename B::NativeStream{});
    CHECK_THROWS_AS((void)moved.stream(1), Error);
    CHECK_FALSE(moved.failed());
}

TEST_CASE("AnyPipeline: one that was moved from is refused, and may be assigned to") {
    const auto make = [] {
        return AnyPipeline<int, B>{Stages{Stage{"only", [](Ref, const int& in, int& out) { out = in; }}},
                                   Slots{[](int) { return 0; }}};
    };
    AnyPipeline<int, B> pipeline = make();
    AnyPipeline<int, B> moved = std::move(pipeline);
    const BasicStream<B> stream;
    const auto check_refused = [](const auto& use) { CHECK(text_of(use) == moved_from("pipeline")); };
    check_refused([&] { pipeline.submit(1); });
    check_refused([&] { (void)pipeline.try_submit(1); });
    check_refused([&] { (void)pipeline.drain<int>(); });
    check_refused([&] { pipeline.wait_for_room(); });
    check_refused([&] { pipeline.wait_for(stream); });
    check_refused([&] { pipeline.flush(); });
    check_refused([&] { pipeline.flush(stream); });
    check_refused([&] { pipeline.finish(); });
    check_refused([&] { pipeline.reset(); });
    check_refused([&] { (void)pipeline.submitted(); });
    check_refused([&] { (void)pipeline.completed(); });
    check_refused([&] { (void)pipeline.dropped(); });
    check_refused([&] { (void)pipeline.options(); });
    check_refused([&] { (void)pipeline.failed(); });
    check_refused([&] { (void)pipeline.graph_counters(); });
    check_refused([&] { (void)pipeline.choice(); });
    check_refused([&] { (void)pipeline.stages(); });
    check_refused([&] { (void)pipeline.stage_name(0); });
    check_refused([&] { (void)pipeline.shares(); });
    {
        std::vector<int> batches{1, 2, 3};
        auto results = moved.run<int>(batches);
        auto result = results.begin();
        pipeline = std::move(moved);
        check_refused([&] { ++result; }); // Not within a loop over its results, and no crash.
        pipeline.finish();
    }
    pipeline = make();
    pipeline.submit(1);
    pipeline.finish();
}

TEST_CASE("AnyPipeline: moved while batches are under way, which are waited for as before") {
    for_each_schedule([](const PipelineOptions& options) {
        Memories memories{words};
        AnyPipeline<Batch, B> pipeline{
            Stage{"first", [&](Ref stream, const Batch& in,
                               Memories::Cells& to) { memories.first()(stream, in.span(), to); }},
            Stage{"last", [&](Ref stream, Memories::Cells& in) { memories.last(1)(stream, in); }},
            memories.make_cells(), options};
        Batch batch(words);
        const auto fill = [&](std::size_t index) {
            for (std::size_t i = 0; i < words; ++i)
                batch[i] = input_word(index, i);
        };
        BatchRead read;
        for (std::size_t index = 0; index < 6; ++index) {
            read.wait();
            fill(index);
            read = pipeline.submit(batch);
            AnyPipeline<Batch, B> moved = std::move(pipeline);
            pipeline = std::move(moved);
        }
        pipeline.finish();
        CHECK(memories.values() == expected_memories(2, words, batches_from(0, 6)));
    });
}

} // namespace pipeline_any_pipeline
