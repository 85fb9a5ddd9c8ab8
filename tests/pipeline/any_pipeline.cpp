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

TEST_CASE("AnyPipeline: says so where it was moved from, and takes another one") {
    using Plain = AnyPipeline<Batch, B>;
    const auto make = [] {
        return Plain(
            Stages{Stage{"copy", [](Ref stream, const Batch& in, Batch& out) { copy(stream, out, in); }}},
            Slots{[](int) { return Batch(words); }});
    };
    Plain pipeline = make();
    Plain other = std::move(pipeline);
    auto source = make_source(3);
    Batch batch(words);
    CHECK(text_of([&] { pipeline.submit(batch).stays(); }) == "the pipeline was moved from");
    CHECK(text_of([&] { (void)pipeline.try_submit(batch).has_value(); }) == "the pipeline was moved from");
    CHECK(text_of([&] { pipeline.finish(); }) == "the pipeline was moved from");
    CHECK(text_of([&] { (void)pipeline.template run<Batch>(source); }) == "the pipeline was moved from");
    CHECK(text_of([&] { (void)pipeline.template drain<Batch>(); }) == "the pipeline was moved from");
    pipeline = make();
    std::size_t results = 0;
    for ([[maybe_unused]] const Batch& result : pipeline.template run<Batch>(source))
        ++results;
    CHECK(results == 3);
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
