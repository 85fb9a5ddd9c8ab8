// Schedule::graphed: one graph a step, the same bits, and nothing lost at either end.
#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_graphed {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Cells = DeviceBuffer<Word, B>;
constexpr std::size_t words = 40;
constexpr std::size_t distinct = 3; // Batches that differ, of which the others are repetitions.

struct Memories : test::CapturableStages<B> {
    Memories() : test::CapturableStages<B>(pipeline_graphed::words) {}
};

std::vector<std::size_t> repeating(std::size_t count) { return test::repeating(count, distinct); }

std::vector<Word> expected_memories(int stages, const std::vector<std::size_t>& batches) {
    return test::expected_memories(stages, words, batches);
}

auto make_cells = [](int) { return Cells(words); };

PipelineOptions graphed(int slots) { return {.schedule = Schedule::graphed, .slots = slots}; }

} // namespace

TEST_CASE("graphed: two captured stages give the bits of a plain loop, whatever slots, ends and delays") {
    const Inputs<B> inputs(distinct, words);
    std::uint64_t seed = 71;
    for (const int slots : {1, 2, 3, 4}) {
        for (const std::size_t count : {0U, 1U, 2U, 3U, 5U, 40U}) {
            CAPTURE(slots);
            CAPTURE(count);
            Delay::set({.seed = ++seed, .one_in = 3, .microseconds = 200});
            Memories memories;
            TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", memories.last(1)},
                                       make_cells, graphed(slots)};
            for (std::size_t batch = 0; batch < count; ++batch)
                pipeline.submit(inputs[batch % distinct]).stays();
            pipeline.finish();
            CHECK(memories.values() == expected_memories(2, repeating(count)));
            if (count == 40) {
                CHECK(pipeline.graph_counters().replays >=
                      40 - 2 * distinct * static_cast<std::size_t>(slots));
                CHECK(pipeline.graph_counters().refusals == 0);
            }
        }
    }
}

TEST_CASE("graphed: three captured stages, with flush and finish in the middle") {
    const Inputs<B> inputs(distinct, words);
    Delay::set({.seed = 5, .one_in = 3, .microseconds = 200});
    Memories memories;
    Pipeline pipeline{Stages{Stage{"first", memories.first()}, Stage{"middle", memories.middle()},
                             Stage{"last", memories.last(2)}},
                      Slots{make_cells, make_cells}, graphed(2)};
    for (std::size_t batch = 0; batch < 60; ++batch) {
        pipeline.submit(inputs[batch % distinct]).stays();
        if (batch == 0 || batch == 20)
            pipeline.flush();
        if (batch == 21 || batch == 40)
            pipeline.finish();
    }
    pipeline.finish();
    CHECK(memories.values() == expected_memories(3, repeating(60)));
    CHECK(pipeline.graph_counters().replays > 30);
}

TEST_CASE("graphed: a pipeline that is destroyed takes its batches to the end") {
    const Inputs<B> inputs(distinct, words);
    Delay::set({.one_in = 0});
    Memories memories;
    {
        TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", memories.last(1)},
                                   make_cells, graphed(2)};
        for (std::size_t batch = 0; batch < 5; ++batch)
            pipeline.submit(inputs[batch % distinct]).stays();
    }
    CHECK(memories.values() == expected_memories(2, repeating(5)));
}

TEST_CASE("graphed: stages that opt out run beside the graph of the others") {
    const Inputs<B> inputs(distinct, words);
    std::uint64_t seed = 900;
    const auto check = [&]<int S>(std::integral_constant<int, S>, std::size_t uncaptured) {
        for (const int slots : {2, 3}) {
            CAPTURE(S);
            CAPTURE(slots);
            CAPTURE(uncaptured);
            Delay::set({.seed = ++seed, .one_in = 3, .microseconds = 300});
            Chain<B> chain(S, words, 50);
            std::array<StageOptions<B>, std::size_t{S}> options{};
            options[S - 1].graphed = false; // it counts its batches on the host
            options[uncaptured].graphed = false;
            auto pipeline = chain.template pipeline<S>(graphed(slots), options);
            for (std::size_t batch = 0; batch < 50; ++batch)
                pipeline.submit(inputs[batch % distinct]).stays();
            pipeline.finish();
            CHECK(chain.results(50) == chain_results(S, words, repeating(50)));
            CHECK(chain.calls(S - 1) == 50);
        }
    };
    check(std::integral_constant<int, 1>{}, 0);
    check(std::integral_constant<int, 2>{}, 1);
    check(std::integral_constant<int, 2>{}, 0);
    check(std::integral_constant<int, 3>{}, 2);
    check(std::integral_constant<int, 3>{}, 0);
    check(std::integral_constant<int, 4>{}, 1);
}

TEST_CASE("graphed: batches of a source are told apart by their slot") {
    Delay::set({.seed = 31, .one_in = 4, .microseconds = 200});
    Memories memories;
    constexpr std::size_t count = 60;
    const auto copy_in = [&](Ref stream, const PinnedBuffer<Word, B>& in, Cells& to) {
        memories.first()(stream, in.span(), to);
    };
    PipelineOptions options = graphed(2);
    options.steps_per_graph = 1; // or it depends on how far the source is
    TwoStreamPipeline pipeline{Stage{"first", copy_in}, Stage{"last", memories.last(1)}, make_cells, options};
    Source source{[](int) { return PinnedBuffer<Word, B>(words); },
                  [](std::size_t index, PinnedBuffer<Word, B>& out) {
                      for (std::size_t i = 0; i < words; ++i)
                          out[i] = input_word(index, i);
                  },
                  SourceOptions<B>{.workers = 2, .slots = 4, .batches = count}};
    for (const auto& batch : source)
        pipeline.submit(batch);
    pipeline.finish();
    CHECK(memories.values() == expected_memories(2, batches_from(0, count)));
    CHECK(pipeline.graph_counters().captures == 4);
    CHECK(pipeline.graph_counters().replays > 40);
}

TEST_CASE(
    "graphed: work on a caller's stream comes before the first step and after the last, external or joined") {
    const Inputs<B> inputs(distinct, words);
    constexpr std::size_t count = 20;
    const auto expected = [](unsigned char before) {
        const Word first = 0x01010101u * before;
        const auto all = chain_results(2, words, repeating(count), first);
        std::vector<Word> memories(all.begin() + count * words, all.end());
        memories.resize(3 * words, first);
        return memories;
    };
    std::uint64_t seed = 400;
    for (const int external_to : {-1, 0, 1}) {
        for (const int slots : {1, 2, 3}) {
            CAPTURE(external_to);
            CAPTURE(slots);
            Delay::set({.seed = ++seed, .one_in = 3, .microseconds = 200});
            const BasicStream<B> mine;
            Memories memories;
            Cells between(3 * words);
            std::array<StageOptions<B>, 2> options;
            if (external_to >= 0)
                options[static_cast<std::size_t>(external_to)].stream = mine;
            TwoStreamPipeline pipeline{Stage{"first", memories.first(), options[0]},
                                       Stage{"last", memories.last(1), options[1]}, make_cells,
                                       graphed(slots)};
            for (const unsigned char before : std::array<unsigned char, 2>{9, 77}) {
                ops::spin(mine.get(), 2000);
                fill_bytes(mine, memories.all, before);
                if (external_to < 0)
                    pipeline.wait_for(mine);
                for (std::size_t batch = 0; batch < count; ++batch)
                    pipeline.submit(inputs[batch % distinct]).stays();
                external_to < 0 ? pipeline.flush(mine) : pipeline.flush();
                copy(mine, between, memories.all);
                std::vector<Word> left(between.size());
                copy_and_wait(mine, left, between);
                CHECK(left == expected(before));
            }
            pipeline.finish();
            CHECK(pipeline.graph_counters().replays > count / 2);
        }
    }
}

TEST_CASE("graphed: a stage that waits cannot be captured, and costs nothing but the graph") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(distinct, words);
    Memories memories;
    const auto waiting = [&](Ref stream, Cells& in) {
        memories.last(1)(stream, in);
        stream.sync();
    };
    static int told;
    told = 0;
    PipelineOptions options = graphed(2);
    options.graphs.on_refusal = [](const char* reason) {
        ++told;
        CHECK(std::string(reason).find("refused") != std::string::npos);
    };
    TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", waiting}, make_cells, options};
    for (std::size_t batch = 0; batch < 24; ++batch)
        pipeline.submit(inputs[batch % distinct]).stays();
    pipeline.finish();
    CHECK(memories.values() == expected_memories(2, repeating(24)));
    CHECK(pipeline.graph_counters().replays == 0);
    CHECK(pipeline.graph_counters().refusals == 6); // two slots, three batches
    CHECK(pipeline.graph_counters().eager.refused ==
          17); // all after each one's first, but for the first step
    CHECK(told == 1);
}

TEST_CASE("graphed: what a stage throws names it and its batch, and the pipeline works again after a reset") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(distinct, words);
    Memories memories;
    bool throws = true;
    const auto failing = [&](Ref stream, Cells& in) {
        if (throws)
            throw std::runtime_error("out of luck");
        memories.last(1)(stream, in);
    };
    TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", failing}, make_cells,
                               graphed(2)};
    pipeline.submit(inputs[0]).stays();
    const auto error = caught_error([&] { pipeline.submit(inputs[1]).stays(); });
    REQUIRE(error);
    CHECK(error->stage() == "last");
    CHECK(error->batch() == 0); // one behind
    CHECK(pipeline.failed());
    CHECK(text_of([&] { pipeline.submit(inputs[0]).stays(); }).find("reset") != std::string::npos);
    throws = false;
    pipeline.reset();
    for (std::size_t batch = 0; batch < 20; ++batch)
        pipeline.submit(inputs[batch % distinct]).stays();
    pipeline.finish();
    CHECK(pipeline.graph_counters().replays > 5);
}

TEST_CASE("graphed: batches that never come again are not captured, and soon not kept") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(120, words);
    for (const bool each_stage : {false, true}) {
        Memories memories;
        PipelineOptions options = graphed(2);
        options.graph_each_stage = each_stage;
        options.graphs.give_up_after = 8;
        static std::string told;
        told.clear();
        options.graphs.on_refusal = [](const char* reason) { told += reason; };
        TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", memories.last(1)},
                                   make_cells, options};
        for (std::size_t batch = 0; batch < 120; ++batch)
            pipeline.submit(inputs[batch]).stays();
        pipeline.finish();
        CHECK(memories.values() == expected_memories(2, batches_from(0, 120)));
        CHECK(pipeline.graph_counters().refusals == 1);
        if (each_stage) { // The other one reads its slot alone.
            CHECK(contains(told, "stage 'first': capture refused: keys do not come again"));
        } else {
            CHECK(contains(told, "stage 'first' to 'last': capture refused: keys do not come again"));
            CHECK(pipeline.graph_counters().captures == 0);
        }
    }
}

TEST_CASE("graphed: a graph for each stage, and nothing is held back") {
    const Inputs<B> inputs(distinct, words);
    for (const int slots : {1, 2, 3}) {
        CAPTURE(slots);
        Delay::set({.seed = 70, .one_in = 3, .microseconds = 200});
        Memories memories;
        PipelineOptions options = graphed(slots);
        options.graph_each_stage = true;
        Pipeline pipeline{Stages{Stage{"first", memories.first()}, Stage{"middle", memories.middle()},
                                 Stage{"last", memories.last(2)}},
                          Slots{make_cells, make_cells}, options};
        for (std::size_t batch = 0; batch < 60; ++batch)
            pipeline.submit(inputs[batch % distinct]).stays();
        // All of it is on the stages' streams, without a flush.
        for (std::size_t stage = 0; stage < 3; ++stage)
            pipeline.stream(stage).sync();
        CHECK(memories.values() == expected_memories(3, repeating(60)));
        CHECK(pipeline.graph_counters().replays > 3 * 30);
        CHECK(pipeline.graph_counters().refusals == 0);
    }
}

TEST_CASE("graphed: beside a stage that opts out, one slot will do") {
    const Inputs<B> inputs(distinct, words);
    Delay::set({.seed = 77, .one_in = 3, .microseconds = 200});
    Memories memories;
    TwoStreamPipeline pipeline{Stage{"first", memories.first()},
                               Stage{"last", memories.last(1), StageOptions<B>{.graphed = false}}, make_cells,
                               graphed(1)};
    for (std::size_t batch = 0; batch < 50; ++batch)
        pipeline.submit(inputs[batch % distinct]).stays();
    pipeline.finish();
    CHECK(memories.values() == expected_memories(2, repeating(50)));
    CHECK(pipeline.graph_counters().replays > 30);
}

TEST_CASE("graphed: after a reset steps are captured anew, with what holds then") {
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        Delay::set({});
        unsigned char value = 1; // A replay would keep it.
        std::vector<Word> seen;
        Readback<Word, B> results{1,
                                  [&](std::size_t, std::span<const Word> word) { seen.push_back(word[0]); }};
        Stage make{"make", [&](Ref stream, std::size_t, Cells& out) { fill_bytes(stream, out, value); }};
        Stage use{"use", [&](Ref stream, const Cells& in) { results.push(stream, in.first(1)); }};
        PipelineOptions options = graphed(2);
        options.graph_each_stage = each_stage;
        TwoStreamPipeline pipeline{make, use, make_cells, options};
        const auto run = [&] {
            seen.clear();
            for (int batch = 0; batch < 12; ++batch)
                pipeline.submit(std::size_t{0});
            pipeline.finish();
            results.finish();
            return seen;
        };
        CHECK(run() == std::vector<Word>(12, 0x01010101));
        const auto before = pipeline.graph_counters();
        CHECK(before.replays > 0);
        pipeline.reset();
        results.reset();
        value = 2;
        CHECK(run() == std::vector<Word>(12, 0x02020202));
        CHECK(pipeline.graph_counters().captures > before.captures);
    }
}

} // namespace pipeline_graphed
