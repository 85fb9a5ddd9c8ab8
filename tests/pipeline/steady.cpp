// Contract 2: the steady state costs nothing: no object created, nothing allocated, no wait on the host.
#include <cstdint>
#include <string>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "pipeline/steady_case.hpp"
#include "support/alive.hpp"
#include "support/gate.hpp"

namespace pipeline_steady {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 32;
constexpr std::size_t laps = 40; // batches that are counted

template <class Check>
void for_each_pipeline(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        for (const int slots : {1, 2, 4}) {
            const PipelineOptions options{.schedule = schedule, .slots = slots};
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(slots);
            check.template operator()<1>(options);
            check.template operator()<2>(options);
            check.template operator()<4>(options);
        }
    }
}

} // namespace

TEST_CASE("Contract 2: counting finds an allocation, a stream, an event, a graph and an executable") {
    const Made before = Made::so_far();
    const BasicStream<B> stream;
    const BasicEvent<B> event;
    DeviceBuffer<Word, B> device(1);
    const PinnedBuffer<Word, B> pinned(1);
    const auto graph = capture(stream, [&](Ref s) { fill_bytes(s, device, 0); });
    const BasicGraphExec<B> executable(graph);
    auto* number = new volatile int(1);
    delete number;
    const Made after = Made::so_far();
    CHECK(after.streams > before.streams); // capture makes one of its own
    CHECK(after.events == before.events + 1);
    CHECK(after.device_allocations == before.device_allocations + 1);
    CHECK(after.pinned_allocations == before.pinned_allocations + 1);
    CHECK(after.graphs == before.graphs + 1);
    CHECK(after.executables == before.executables + 1);
    CHECK((after.heap_allocations > before.heap_allocations || runtime_allocates<B>()));
}

TEST_CASE("Contract 2: after the first lap a step creates and allocates nothing") {
    for_each_pipeline([]<int S>(const PipelineOptions& options) {
        CAPTURE(S);
        const auto lap = static_cast<std::size_t>(options.slots);
        const Inputs<B> inputs(lap + laps, words);
        Chain<B> chain(S, words, lap + laps);
        auto pipeline = chain.template pipeline<S>(options);
        for (std::size_t batch = 0; batch < lap; ++batch)
            pipeline.submit(inputs[batch]).stays();
        const Made before = Made::so_far();
        for (std::size_t batch = lap; batch < lap + laps; ++batch) {
            pipeline.submit(inputs[batch]).stays();
            if (batch % 10 == 3)
                pipeline.flush();
        }
        pipeline.finish();
        const Made after = Made::so_far();
        CHECK(after == before);
        CHECK(chain.results(lap + laps) == chain_results(S, words, batches_from(0, lap + laps)));
    });
}

TEST_CASE("Contract 2: nor does a step with external streams, a source and a readback") {
    const BasicStream<B> mine;
    for (const int workers : {0, 1, 2}) {
        for_each_pipeline([&]<int S>(const PipelineOptions& options) {
            CAPTURE(S);
            CAPTURE(workers);
            constexpr std::size_t warm_up = 20; // the source's slots, the readback's, and the pipeline's
            constexpr std::size_t batches = warm_up + laps;
            Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                          [](std::size_t index, PinnedBuffer<Word, B>& out) {
                              for (std::size_t i = 0; i < words; ++i)
                                  out[i] = input_word(index, i);
                          },
                          SourceOptions<B>{.workers = workers, .slots = 4, .batches = batches}};
            Chain<B> chain(S, words, batches);
            std::size_t results = 0;
            Readback<Word, B> readback(
                words, [&](auto, auto) { ++results; }, 3);
            chain.after = [&](std::size_t stage, Ref stream, std::size_t) {
                if (stage + 1 == S)
                    readback.push(stream, chain.memory(stage));
            };
            std::array<StageOptions<B>, std::size_t{S}> external;
            external[0].stream = mine;
            auto pipeline = chain.template pipeline<S>(options, external);
            for (std::size_t batch = 0; batch < warm_up; ++batch)
                pipeline.submit(*source.next());
            const Made before = Made::so_far();
            for (auto& batch : source)
                pipeline.submit(batch);
            pipeline.flush();
            pipeline.wait_for(mine);
            pipeline.finish();
            readback.finish();
            const Made after = Made::so_far();
            CHECK(after == before);
            CHECK(results == batches);
            CHECK(chain.results(batches) == chain_results(S, words, batches_from(0, batches)));
        });
    }
}

TEST_CASE("Contract 2: nor does a step with two sources, of which one drops batches") {
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        constexpr std::size_t warm_up = 20;
        constexpr std::size_t batches = warm_up + laps;
        const auto make = [](int) { return PinnedBuffer<Word, B>(words); };
        const auto number = [](std::size_t index, PinnedBuffer<Word, B>& out) {
            for (std::size_t i = 0; i < words; ++i)
                out[i] = input_word(index, i);
        };
        Source source{make, number, SourceOptions<B>{.workers = 1, .slots = 4, .batches = batches}};
        Source other{make, number,
                     SourceOptions<B>{.workers = 1, .slots = 4, .when_ahead = WhenAhead::drop_oldest}};
        auto both =
            zip(source, latest(other), [](const PinnedBuffer<Word, B>& first, const PinnedBuffer<Word, B>&) {
                return PinnedSpan<const Word, B>(first);
            });
        Chain<B> chain(S, words, batches);
        auto pipeline = chain.template pipeline<S>(options);
        for (std::size_t batch = 0; batch < warm_up; ++batch)
            pipeline.submit(*both.next());
        const Made before = Made::so_far();
        for (auto& batch : both)
            pipeline.submit(batch);
        pipeline.finish();
        const Made after = Made::so_far();
        CHECK(after == before);
        other.stop();
        CHECK(chain.results(batches) == chain_results(S, words, batches_from(0, batches)));
    });
}

TEST_CASE("Contract 2: nor does a graphed step, once its batches have come before in each slot") {
    constexpr std::size_t distinct = 3;
    const Inputs<B> inputs(distinct, words);
    for (const int slots : {1, 2, 4}) {
        for (const bool last_captured : {true, false}) {
            if (slots == 1 && !last_captured)
                continue; // these do not go together
            CAPTURE(slots);
            CAPTURE(last_captured);
            // All pairs of batch and slot, twice, and as many replays under way as later on.
            const std::size_t warm_up = 2 * distinct * static_cast<std::size_t>(slots) + laps;
            CapturableStages<B> memories(words);
            TwoStreamPipeline pipeline{
                Stage{"first", memories.first()},
                Stage{"last", memories.last(1), StageOptions<B>{.graphed = last_captured}},
                memories.make_cells(), PipelineOptions{.schedule = Schedule::graphed, .slots = slots}};
            for (std::size_t batch = 0; batch < warm_up; ++batch)
                pipeline.submit(inputs[batch % distinct]).stays();
            const Made before = Made::so_far();
            for (std::size_t batch = warm_up; batch < warm_up + laps; ++batch) {
                pipeline.submit(inputs[batch % distinct]).stays();
                if (batch % 10 == 3)
                    pipeline.flush();
            }
            pipeline.finish();
            const Made after = Made::so_far();
            CHECK(after == before);
            CHECK(pipeline.graph_counters().replays >= laps - laps / 10 - 1); // all but those after a flush
            CHECK(pipeline.graph_counters().refusals == 0);
            CHECK(memories.values() == expected_memories(2, words, repeating(warm_up + laps, distinct)));
        }
    }
}

TEST_CASE("Contract 2: a pipeline makes a stream a stage, an event a stage and slot, and four, once") {
    for_each_pipeline([]<int S>(const PipelineOptions& options) {
        CAPTURE(S);
        Chain<B> chain(S, words, 1);
        const Made before = Made::so_far();
        auto pipeline = chain.template pipeline<S>(options);
        const Made after = Made::so_far();
        const bool serial = options.schedule == Schedule::serial;
        const auto rings = static_cast<std::uint64_t>(S - 1);
        const auto slots = static_cast<std::uint64_t>(options.slots);
        CHECK(after.streams - before.streams == (serial ? 1 : S));
        CHECK(after.events - before.events ==
              S * slots + 1 + 3); // one that joins streams, and those behind many batches
        CHECK(after.device_allocations - before.device_allocations == rings * slots);
        CHECK(after.pinned_allocations == before.pinned_allocations);
    });
}

TEST_CASE("Contract 2: neither submit nor flush waits for the work of any stage") {
    if (!streams_overlap<B>())
        return;
    constexpr std::size_t batches = 20;
    const Inputs<B> inputs(batches, words);
    for_each_pipeline([&]<int S>(const PipelineOptions& options) {
        for (std::size_t held = 0; held < S; ++held) {
            CAPTURE(S);
            CAPTURE(held);
            Gate<B> gate;
            Chain<B> chain(S, words, batches);
            chain.before = [&](std::size_t stage, Ref stream, std::size_t batch) {
                if (stage == held && batch == 0)
                    gate.hold(stream);
            };
            auto pipeline = chain.template pipeline<S>(options);
            for (std::size_t batch = 0; batch < batches; ++batch)
                pipeline.submit(inputs[batch]).stays();
            pipeline.flush();
            REQUIRE_FALSE(pipeline.stream(held).is_done()); // the gate has held all the while
            gate.open();
            pipeline.finish();
            CHECK(chain.results(batches) == chain_results(S, words, batches_from(0, batches)));
        }
    });
}

} // namespace pipeline_steady
