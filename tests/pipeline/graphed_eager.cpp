// Schedule::graphed: whatever is not replayed is counted, under its reason.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_graphed_eager {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Cells = DeviceBuffer<Word, B>;
constexpr std::size_t words = 40;
constexpr std::size_t distinct = 3;

struct Memories : test::CapturableStages<B> {
    Memories() : test::CapturableStages<B>(pipeline_graphed_eager::words) {}
};

PipelineOptions graphed(int slots, bool each_stage = false) {
    PipelineOptions options{.schedule = Schedule::graphed, .slots = slots, .graph_each_stage = each_stage};
    options.graphs.on_refusal = nullptr;
    return options;
}

/// What two stages count over 30 batches, with a `flush` after the tenth.
template <class First, class Last>
GraphCounters counters_of(const First& first, const Last& last, const PipelineOptions& options) {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(distinct, words);
    TwoStreamPipeline pipeline{first, last, [](int) { return Cells(words); }, options};
    for (std::size_t batch = 0; batch < 30; ++batch) {
        pipeline.submit(inputs[batch % distinct]).stays();
        if (batch == 9)
            pipeline.flush();
    }
    pipeline.finish();
    return pipeline.graph_counters();
}

/// A batch that shows nothing of itself.
class Hidden {
public:
    explicit Hidden(PinnedSpan<const Word, B> in) : in_(in), number_(std::make_shared<int>(1)) {}
    PinnedSpan<const Word, B> in() const { return in_; }

private:
    PinnedSpan<const Word, B> in_;
    std::shared_ptr<int> number_;
};

} // namespace

TEST_CASE("graphed: there are as many graphs of whole steps as GraphOptions::capacity says") {
    for (const std::size_t capacity : {1u, 2u, 4u}) {
        CAPTURE(capacity);
        Cells cells(1);
        struct Number {
            Word value;
        };
        PipelineOptions options = graphed(1);
        options.graphs.capacity = capacity;
        Pipeline pipeline{
            Stages{Stage{"only", [&](Ref on, const Number& batch) { fill(on, cells, batch.value); }}},
            Slots{}, options};
        for (Word batch = 0; batch < 400; ++batch)
            (void)pipeline.submit(Number{batch % 4});
        pipeline.finish();
        // Each batch runs eagerly the first time, and those without a place each time.
        CHECK(pipeline.graph_counters().captures == capacity);
        CHECK(pipeline.graph_counters().replays == 99 * capacity);
    }
}

TEST_CASE("graphed: each step is a replay, or is counted as eager with its reason") {
    Memories memories;
    const Stage first{"first", memories.first()};
    const Stage last{"last", memories.last(1)};
    {
        const GraphCounters counters = counters_of(first, last, graphed(2));
        CHECK(counters.eager.ends == 4); // the first step, and what is left at the end, twice
        CHECK(counters.eager.first_runs > 0);
        CHECK(counters.eager.total() == counters.eager.ends + counters.eager.first_runs);
        CHECK(counters.replays + counters.eager.total() == 30 + 2);
    }
    {
        const GraphCounters counters = counters_of(first, last, graphed(2, true));
        CHECK(counters.eager.total() == counters.eager.first_runs);
        CHECK(counters.replays + counters.eager.total() == 2 * 30);
    }
}

TEST_CASE("graphed: a flush after each batch, which leaves no step to replay, is told of") {
    static int told;
    told = 0;
    PipelineOptions options = graphed(2);
    options.graphs.on_refusal = [](const char* reason) {
        told += contains(reason, "cut off every step before all stages had joined it") ? 1 : 100;
    };
    Memories memories;
    const Inputs<B> inputs(1, words);
    TwoStreamPipeline pipeline{Stage{"first", memories.first()}, Stage{"last", memories.last(1)},
                               [](int) { return Cells(words); }, options};
    for (int batch = 0; batch < 100; ++batch) {
        pipeline.submit(inputs[0]).stays();
        pipeline.flush();
    }
    pipeline.finish();
    CHECK(pipeline.graph_counters().replays == 0);
    CHECK(told == 1);
    CHECK(pipeline.graph_counters().refusals == 1);
}

TEST_CASE("graphed: steps under launch_blocking are counted as eager") {
    Memories memories;
    const Stage first{"first", memories.first()};
    const Stage last{"last", memories.last(1)};
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        PipelineOptions options = graphed(2, each_stage);
        options.launch_blocking = true;
        const GraphCounters counters = counters_of(first, last, options);
        CHECK(counters.replays == 0);
        CHECK(counters.eager.blocking == (each_stage ? 60 : 30));
        CHECK(counters.eager.total() == counters.eager.blocking + counters.eager.ends);
    }
}

TEST_CASE("graphed: steps whose batches have other sizes than any before run eagerly once, those at other "
          "addresses do not") {
    Delay::set({.one_in = 0});
    // One graph of two batches, each at an address of its own.
    const auto first_runs = [](const std::vector<std::size_t>& sizes) {
        const Inputs<B> inputs(30, words);
        Cells out(words);
        const auto only = [&](Ref stream, PinnedSpan<const Word, B> in) {
            copy(stream, out.span().first(in.size()), in);
        };
        PipelineOptions options = graphed(2);
        options.steps_per_graph = 2;
        Pipeline pipeline{Stages{Stage{"only", only}}, options};
        std::size_t number = 0;
        for (const std::size_t size : sizes)
            pipeline.submit(inputs[number++].first(size)).stays();
        pipeline.finish();
        const GraphCounters counters = pipeline.graph_counters();
        CHECK(counters.captures + counters.eager.first_runs == sizes.size() / 2);
        return counters.eager.first_runs;
    };
    const std::size_t a = 3, b = 5, c = 7;
    CHECK(first_runs({a, a, a, a, a, a}) == 1);
    CHECK(first_runs({a, a, a, b, a, c, a, b, b, a, b, b, a, a}) == 5); // all but the second a, b and a, a
}

TEST_CASE("graphed: a stage that opts out is counted as eager") {
    Memories memories;
    const Stage last{"last", memories.last(1), StageOptions<B>{.graphed = false}};
    const GraphCounters counters = counters_of(Stage{"first", memories.first()}, last, graphed(2));
    CHECK(counters.eager.opted_out == 30);
    CHECK(counters.replays + counters.eager.total() == 60);
    CHECK(counters.refusals == 0);
}

TEST_CASE("graphed: batches that cannot be told apart are counted as eager") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(distinct, words);
    const std::vector<Hidden> batches{Hidden(inputs[0]), Hidden(inputs[1]), Hidden(inputs[2])};
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        Memories memories;
        const auto read = [&](Ref stream, const Hidden& in, Cells& out) {
            memories.first()(stream, in.in(), out);
        };
        TwoStreamPipeline pipeline{Stage{"first", read}, Stage{"last", memories.last(1)},
                                   memories.make_cells(), graphed(2, each_stage)};
        for (std::size_t batch = 0; batch < 20; ++batch)
            pipeline.submit(batches[batch % distinct]).stays();
        pipeline.finish();
        const GraphCounters counters = pipeline.graph_counters();
        CHECK(counters.eager.untold == (each_stage ? 20 : 19));
        CHECK(counters.refusals == counters.eager.untold);
        CHECK(counters.replays + counters.eager.total() == (each_stage ? 40 : 21));
    }
    // It is said at the first one, and once.
    static int told = 0;
    told = 0;
    Memories memories;
    const auto read = [&](Ref stream, const Hidden& in, Cells& out) {
        memories.first()(stream, in.in(), out);
    };
    PipelineOptions options = graphed(2, true);
    options.graphs.on_refusal = [](const char*) { ++told; };
    TwoStreamPipeline pipeline{Stage{"first", read}, Stage{"last", memories.last(1)}, memories.make_cells(),
                               options};
    pipeline.submit(batches[0]).stays();
    CHECK(told == 1);
    pipeline.submit(batches[1]).stays();
    pipeline.finish();
    CHECK(told == 1);
}

TEST_CASE("graphed: a batch with more elements than are compared runs eagerly, and the reason says so") {
    Delay::set({.one_in = 0});
    for (const std::size_t size : {std::size_t{4096}, std::size_t{4097}}) {
        CAPTURE(size);
        const std::vector<int> batch(size);
        static std::string told;
        told.clear();
        PipelineOptions options = graphed(2, true);
        options.graphs.on_refusal = [](const char* reason) { told = reason; };
        Memories memories;
        const Inputs<B> inputs(1, words);
        const auto read = [&](Ref stream, const std::vector<int>&, Cells& out) {
            memories.first()(stream, inputs[0], out);
        };
        TwoStreamPipeline pipeline{Stage{"first", read}, Stage{"last", memories.last(1)},
                                   memories.make_cells(), options};
        for (int i = 0; i < 8; ++i)
            pipeline.submit(batch).wait();
        pipeline.finish();
        CHECK(pipeline.graph_counters().eager.untold == (size > 4096 ? 8 : 0));
        CHECK(told ==
              (size > 4096
                   ? "capture refused: batches are told apart by what their members hold on the host, "
                     "and this type does not show its members, or a container in it has more than "
                     "4,096 elements; write a graph_key(const Batch&) for it"
                   : ""));
    }
}

TEST_CASE(
    "graphed: stages that change their slots on the host, and those that are refused, are counted as eager") {
    Memories memories;
    const auto late = [&, calls = 0](Ref stream, Cells& in) mutable {
        memories.last(1)(stream, in);
        if (++calls > 0)
            stream.sync();
    };
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        const GraphCounters counters =
            counters_of(Stage{"first", memories.first()}, Stage{"last", late}, graphed(2, each_stage));
        CHECK(counters.refusals > 0);
        CHECK(counters.eager.refused > 0);
        CHECK(counters.replays + counters.eager.total() == (each_stage ? 60 : 32));
    }

    struct Counted {
        Cells cells{words};
        int batches = 0;
    };
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(distinct, words);
    const auto counting = [&](Ref stream, PinnedSpan<const Word, B> in, Counted& out) {
        ++out.batches;
        memories.first()(stream, in, out.cells);
    };
    const auto reading = [&](Ref stream, Counted& in) { memories.last(1)(stream, in.cells); };
    TwoStreamPipeline pipeline{Stage{"first", counting}, Stage{"last", reading},
                               [](int) { return Counted(); }, graphed(2)};
    for (std::size_t batch = 0; batch < 30; ++batch)
        pipeline.submit(inputs[batch % distinct]).stays();
    pipeline.finish();
    const GraphCounters counters = pipeline.graph_counters();
    CHECK(counters.replays == 0);
    CHECK(counters.eager.total() == 31);
}

TEST_CASE("graphed: a stage that enqueues nothing costs nothing beside others, and alone is a refusal") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(distinct, words);
    Memories memories;
    const auto nothing = [](Ref, Cells&) {};
    {
        const GraphCounters counters =
            counters_of(Stage{"first", memories.first()}, Stage{"last", nothing}, graphed(2));
        CHECK(counters.refusals == 0);
        CHECK(counters.replays > 15);
    }
    {
        const GraphCounters counters =
            counters_of(Stage{"first", memories.first()}, Stage{"last", nothing}, graphed(2, true));
        CHECK(counters.refusals == 2); // one a slot
        CHECK(counters.eager.refused == 28);
        CHECK(counters.replays + counters.eager.total() == 60);
    }
}

TEST_CASE("graphed: batches at many addresses are captured once where they come in turns, and seldom where "
          "they do not") {
    Delay::set({.one_in = 0});
    constexpr std::size_t blocks = 64, runs = 64 * 12 * 3;
    const Inputs<B> inputs(blocks, words);
    for (const bool in_turns : {true, false}) {
        CAPTURE(in_turns);
        Cells sink(words);
        Stage make{"make",
                   [](Ref stream, PinnedSpan<const Word, B> in, Cells& out) { copy(stream, out, in); },
                   StageOptions<B>{.lanes = 4}};
        Stage use{"use", [&](Ref stream, const Cells& in) { copy(stream, sink, in); }};
        TwoStreamPipeline pipeline{make, use, [](int) { return Cells(words); }, graphed(3)};
        std::mt19937 random(3);
        for (std::size_t batch = 0; batch < runs; ++batch)
            pipeline.submit(inputs[in_turns ? batch % blocks : random() % blocks]).stays();
        pipeline.finish();
        const GraphCounters counters = pipeline.graph_counters();
        CHECK(counters.replays + counters.eager.total() == 2 * runs);
        if (in_turns) {
            CHECK(counters.captures == 192 + 3); // each block meets each slot and lane
            CHECK(counters.replays >= 2 * (runs - 192) - 6);
        } else {
            CHECK(counters.captures <= 3 + 256 + 64 + runs / 64);
            CHECK(counters.replays > runs + runs / 5);
        }
    }
}

TEST_CASE("graphed: graphs of whole steps stop being captured where addresses come at random, and go on "
          "where in turns") {
    Delay::set({.one_in = 0});
    constexpr std::size_t blocks = 64, runs = 64 * 12;
    const Inputs<B> inputs(blocks, words);
    for (const int steps : {1, 4}) {
        for (const bool in_turns : {true, false}) {
            CAPTURE(steps);
            CAPTURE(in_turns);
            Cells sink(words);
            using Second = Tagged<int, Cells>;
            Stage make{"make",
                       [](Ref stream, PinnedSpan<const Word, B> in, Cells& out) { copy(stream, out, in); }};
            Stage pass{"pass", [](Ref stream, const Cells& in, Second& out) { copy(stream, out, in); }};
            Stage use{"use", [&](Ref stream, const Second& in) { copy(stream, sink, in); }};
            PipelineOptions options = graphed(2);
            options.steps_per_graph = steps;
            Pipeline pipeline{
                Stages{make, pass, use},
                Slots{[](int) { return Cells(words); }, [](int) { return Second{Cells(words)}; }}, options};
            std::mt19937 random(3);
            for (std::size_t batch = 0; batch < runs; ++batch)
                pipeline.submit(inputs[in_turns ? batch % blocks : random() % blocks]).stays();
            pipeline.finish();
            const GraphCounters counters = pipeline.graph_counters();
            // A step is told apart by the batches of all stages: at random such a key hardly comes again.
            CHECK(counters.captures <= (in_turns ? blocks / static_cast<std::size_t>(steps) : 4));
            if (in_turns)
                CHECK(counters.replays >= (runs - blocks) / static_cast<std::size_t>(steps) - 3);
            else
                CHECK(counters.eager.first_runs >= runs / static_cast<std::size_t>(steps) - 8);
        }
    }
}

} // namespace pipeline_graphed_eager
