// Contract 4 where batches are held for a graph of many steps: nothing is lost, whatever ends when.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_ends_graphed {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
constexpr std::size_t words = 16;
constexpr std::size_t distinct = 2;
using Late = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{2}, DagStage{5, true, false}>;
using WithCpu = Dag<B, DagStage{0, true}, DagStage{1, false, true, true}, DagStage{3, true, false}>;

auto make_slot = [](int) { return PinnedBuffer<Word, B>(words); };
auto fill_slot = [](std::size_t index, PinnedBuffer<Word, B>& out) {
    for (std::size_t i = 0; i < words; ++i)
        out[i] = input_word(index % distinct, i);
};

template <class Check>
void for_each_way(Check&& check) {
    std::uint64_t seed = 900;
    for (const Schedule schedule : {Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {2, 3}) {
            for (const int steps : {0, 1, 5, 16}) {
                if (steps > 0 && schedule != Schedule::graphed)
                    continue;
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(slots);
                CAPTURE(steps);
                Delay::set({.seed = ++seed, .one_in = 5, .microseconds = 200});
                check.template operator()<Late>(dag_options(schedule, slots, steps));
                check.template operator()<WithCpu>(dag_options(schedule, slots, steps));
            }
        }
    }
}

} // namespace

TEST_CASE(
    "ends: a pipeline is destroyed after any number of batches, with a source that goes on, or has gone") {
    for_each_way([]<class D>(PipelineOptions options) {
        for (const std::size_t count : {1u, 3u, 6u, 21u, 40u}) {
            for (const bool source_first : {false, true}) {
                CAPTURE(count);
                CAPTURE(source_first);
                D dag(words);
                options.slots = slots_for(dag, options);
                auto source =
                    std::make_unique<Source<PinnedBuffer<Word, B>, NoState, decltype(fill_slot), B>>(
                        make_slot, fill_slot, SourceOptions<B>{.workers = 2, .slots = 5});
                BatchRead outlives;
                PinnedBuffer<Word, B> own(words);
                fill_slot(count, own);
                {
                    auto pipeline = dag.pipeline(options);
                    for (std::size_t batch = 0; batch < count; ++batch) {
                        const auto next = source->next();
                        pipeline.submit(next);
                    }
                    if (source_first)
                        source.reset();
                    outlives = pipeline.submit(own);
                }
                CHECK(dag.memories() == dag.expected(repeating(count + 1, distinct)));
            }
        }
    });
}

TEST_CASE("ends: reset with batches that are held drops them, and gives their slots back to the source") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        Source source{make_slot, fill_slot, SourceOptions<B>{.workers = 1, .slots = 6, .batches = 30}};
        for (int round = 0; round < 3; ++round) {
            for (int batch = 0; batch < 4; ++batch) {
                const auto next = source.next();
                pipeline.submit(next);
            }
            pipeline.reset();
            CHECK(pipeline.submitted() == 0);
        }
        dag.clear();
        std::size_t count = 0;
        for (const auto& batch : source) {
            CHECK(batch.index() == 12 + count);
            pipeline.submit(batch);
            ++count;
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(repeating(count, distinct)));
    });
}

TEST_CASE("ends: sources of one, two and three slots, one after the other and in turns") {
    for_each_way([]<class D>(PipelineOptions options) {
        D dag(words);
        options.slots = slots_for(dag, options);
        auto pipeline = dag.pipeline(options);
        std::size_t count = 0;
        for (const int slots : {1, 2, 3}) {
            Source source{make_slot, fill_slot,
                          SourceOptions<B>{.workers = 1, .slots = slots, .batches = 12}};
            for (const auto& batch : source)
                pipeline.submit(batch);
            count += 12;
        }
        Source one{make_slot, fill_slot, SourceOptions<B>{.workers = 1, .slots = 1, .batches = 20}};
        Source many{make_slot, fill_slot, SourceOptions<B>{.workers = 2, .slots = 8, .batches = 20}};
        for (std::size_t batch = 0; batch < 20; ++batch) {
            {
                const auto next = one.next();
                pipeline.submit(next);
            }
            {
                const auto next = many.next();
                pipeline.submit(next);
            }
        }
        pipeline.finish();
        std::vector<std::size_t> batches = repeating(count, distinct);
        for (std::size_t batch = 0; batch < 20; ++batch)
            batches.insert(batches.end(), 2, batch % distinct);
        CHECK(dag.memories() == dag.expected(batches));
    });
}

TEST_CASE(
    "Contract 5: what a stage throws while it is captured reaches the caller, with its stage and batch") {
    static const Inputs<B> inputs(distinct, words);
    Delay::set({.one_in = 0});
    for (const int steps : {1, 4}) {
        // Each call of the callable throws once: eager ones, those within a capture, and none while it is replayed.
        std::size_t thrown_in_capture = 0;
        for (std::size_t throws_at = 0; throws_at < 40; ++throws_at) {
            CAPTURE(steps);
            CAPTURE(throws_at);
            std::size_t calls = 0;
            PinnedBuffer<Word, B> memory(words), out(words);
            for (std::size_t i = 0; i < words; ++i)
                memory[i] = 0;
            struct Slot {
                DeviceBuffer<Word, B> words;
            };
            const auto first = [](BasicStreamRef<B> stream, PinnedSpan<const Word, B> in, Slot& to) {
                copy(stream, to.words, in);
            };
            const auto last = [&](BasicStreamRef<B> stream, const Slot& in) {
                if (calls++ == throws_at)
                    throw std::out_of_range("no weights");
                ops::step(stream.get(), out.data(), in.words.data(), memory.data(), words);
            };
            Pipeline pipeline{Stages{Stage{"first", first}, Stage{"last", last}},
                              Slots{[](int) { return Slot{DeviceBuffer<Word, B>(words)}; }},
                              dag_options(Schedule::graphed, 2, steps)};
            std::size_t captures = 0;
            const auto epoch = [&] {
                for (std::size_t batch = 0; batch < 40; ++batch) {
                    captures = pipeline.graph_counters().captures;
                    pipeline.submit(inputs[batch % distinct]).stays();
                }
                pipeline.finish();
            };
            const auto error = caught_error(epoch);
            if (error) {
                CHECK(error->stage() == "last");
                CHECK(error->batch());
                CHECK(contains(error->what(), "its callable threw: no weights"));
                CHECK(pipeline.failed());
                if (throws_at > 0 && *error->batch() > 2 * static_cast<std::size_t>(steps))
                    ++thrown_in_capture;
                pipeline.reset();
                for (std::size_t i = 0; i < words; ++i)
                    memory[i] = 0;
                epoch();
            }
            CHECK(pipeline.graph_counters().replays > 0);
            CHECK(pipeline.graph_counters().refusals == 0);
            Word expected = 0;
            for (std::size_t batch = 0; batch < 40; ++batch)
                expected = next_memory(expected, input_word(batch % distinct, 0));
            CHECK(memory[0] == expected);
        }
        CHECK(thrown_in_capture > 0);
    }
}

} // namespace pipeline_ends_graphed
