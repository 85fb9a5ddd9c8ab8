// A caller's own streams: external to a stage, or joined and flushed to by hand.
#include <array>
#include <optional>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/chain.hpp"
#include "pipeline/dag.hpp"
#include "support/delayed_backend.hpp"
#include "support/gate.hpp"

namespace pipeline_external_streams {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 32;
constexpr std::size_t batches = 6;
constexpr int stages = 3;

// Memory whose bytes are all `value`.
constexpr Word repeated(unsigned char value) { return 0x01010101u * value; }

// What the caller does on the stream: slowly, something that all stages depend on.
void set_memory(Chain<B>& chain, Ref stream, unsigned char value) {
    ops::spin(stream.get(), 3000);
    fill_bytes(stream, chain.memory(), value);
}

// The last work of the pipeline is slow.
void make_end_slow(Chain<B>& chain) {
    chain.before = [](std::size_t stage, Ref stream, std::size_t batch) {
        if (stage + 1 == stages && batch + 1 == batches)
            ops::spin(stream.get(), 3000);
    };
}

auto lend(Ref stream, std::size_t to_stage) {
    std::array<StageOptions<B>, stages> options;
    options[to_stage].stream = stream;
    return options;
}

// Each schedule, and each stage that the stream may be external to.
template <class Check>
void for_each_place(Check&& check) {
    Delay::set({.seed = 5, .one_in = 3, .microseconds = 300});
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            CAPTURE(std::string(to_string(schedule)));
            CAPTURE(stage);
            check(PipelineOptions{.schedule = schedule}, stage);
        }
    }
}

template <class P>
void submit_from(P& pipeline, const Inputs<B>& inputs, std::size_t first, std::size_t count) {
    for (std::size_t batch = first; batch < first + count; ++batch)
        pipeline.submit(inputs[batch]).stays();
}

constexpr unsigned from(std::size_t stage) { return 1u << stage; }

// Stages `on_it` are given one stream, and remember what they have seen in one place: the bits show their order. Stage
// `of_two_lanes` works on two batches at a time.
template <DagStage... Ss>
void check_one_stream(const std::vector<std::size_t>& on_it, std::optional<std::size_t> of_two_lanes = {}) {
    constexpr std::size_t count = 40;
    const Inputs<B> inputs(2, words);
    const BasicStream<B> mine;
    const auto check = [&](const PipelineOptions& options, std::size_t ends) {
        CAPTURE(std::string(to_string(options.schedule)));
        CAPTURE(options.slots);
        CAPTURE(options.steps_per_graph);
        CAPTURE(options.graph_each_stage);
        CAPTURE(ends);
        Delay::set({.seed = 11 + ends, .one_in = 3, .microseconds = 150});
        Dag<B, Ss...> dag(words);
        for (const std::size_t stage : on_it) {
            dag.streams[stage] = mine;
            dag.memory_of[stage] = on_it[0];
        }
        if (of_two_lanes)
            dag.lanes[*of_two_lanes] = 2;
        auto pipeline = dag.pipeline(options);
        for (std::size_t batch = 0; batch < count; ++batch) {
            pipeline.submit(inputs[batch % 2]).stays();
            if (ends > 0 && batch % ends == 0)
                batch % 2 == 0 ? pipeline.flush() : pipeline.finish();
        }
        pipeline.finish();
        CHECK(dag.memories() == dag.expected(repeating(count, 2)));
        if (options.schedule == Schedule::graphed && ends == 0)
            CHECK(pipeline.graph_counters().replays > 0);
    };
    for (const int slots : {1, 2, 3}) {
        for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::automatic})
            check(dag_options(schedule, slots, 0), 0);
        for (const int steps : {0, 4}) {
            for (const std::size_t ends : {0u, 7u})
                check(dag_options(Schedule::graphed, slots, steps), ends);
        }
        auto each_stage = dag_options(Schedule::graphed, slots, 0);
        each_stage.graph_each_stage = true;
        check(each_stage, 0);
    }
}

} // namespace

TEST_CASE("External streams: work already there is done before the first batch, by all stages") {
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> mine;
    for_each_place([&](const PipelineOptions& options, std::size_t stage) {
        Chain<B> chain(stages, words, batches);
        auto pipeline = chain.pipeline<stages>(options, lend(mine, stage));
        set_memory(chain, mine, 9);
        submit_from(pipeline, inputs, 0, batches);
        pipeline.finish();
        CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches), repeated(9)));
    });
}

TEST_CASE("External streams: later work on it comes after flush, and after all stages") {
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> mine;
    for_each_place([&](const PipelineOptions& options, std::size_t stage) {
        Chain<B> chain(stages, words, batches);
        make_end_slow(chain);
        auto pipeline = chain.pipeline<stages>(options, lend(mine, stage));
        submit_from(pipeline, inputs, 0, batches);
        pipeline.flush();
        CHECK(chain.results(batches, mine) == chain_results(stages, words, batches_from(0, batches)));
        pipeline.finish();
    });
}

TEST_CASE("External streams: work between a flush and the next submit comes between the batches") {
    const Inputs<B> inputs(2 * batches, words);
    const BasicStream<B> mine;
    for_each_place([&](const PipelineOptions& options, std::size_t stage) {
        Chain<B> chain(stages, words, 2 * batches);
        make_end_slow(chain);
        auto pipeline = chain.pipeline<stages>(options, lend(mine, stage));
        submit_from(pipeline, inputs, 0, batches);
        pipeline.flush();
        set_memory(chain, mine, 77);
        submit_from(pipeline, inputs, batches, batches);
        pipeline.finish();

        auto expected = chain_results(stages, words, batches_from(0, batches));
        expected.resize(batches * words);
        const auto second = chain_results(stages, words, batches_from(batches, batches), repeated(77));
        expected.insert(expected.end(), second.begin(), second.end());
        CHECK(chain.results(2 * batches) == expected);
    });
}

TEST_CASE("External streams: join orders batches after a stream, flush(stream) the stream after them") {
    const Inputs<B> inputs(2 * batches, words);
    const BasicStream<B> mine, other;
    Delay::set({.seed = 6, .one_in = 3, .microseconds = 300});
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        Chain<B> chain(stages, words, 2 * batches);
        make_end_slow(chain);
        auto pipeline = chain.pipeline<stages>({.schedule = schedule});
        set_memory(chain, mine, 21);
        pipeline.wait_for(mine);
        submit_from(pipeline, inputs, 0, batches);
        pipeline.flush(other);
        auto expected = chain_results(stages, words, batches_from(0, batches), repeated(21));
        CHECK(chain.results(batches, other) == expected);

        pipeline.flush(mine);
        set_memory(chain, mine, 50);
        pipeline.wait_for(mine);
        submit_from(pipeline, inputs, batches, batches);
        pipeline.flush(mine);
        expected.resize(batches * words);
        const auto second = chain_results(stages, words, batches_from(batches, batches), repeated(50));
        expected.insert(expected.end(), second.begin(), second.end());
        CHECK(chain.results(2 * batches, mine) == expected);
    }
}

TEST_CASE("External streams: flush does not wait on the host") {
    if (!streams_overlap<B>())
        return;
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> mine;
    for_each_place([&](const PipelineOptions& options, std::size_t stage) {
        Gate<B> gate;
        Chain<B> chain(stages, words, batches);
        chain.before = [&](std::size_t at_stage, Ref stream, std::size_t batch) {
            if (at_stage + 1 == stages && batch + 1 == batches)
                gate.hold(stream);
        };
        auto pipeline = chain.pipeline<stages>(options, lend(mine, stage));
        submit_from(pipeline, inputs, 0, batches);
        pipeline.flush();
        REQUIRE_FALSE(mine.is_done()); // the gate has held all the while
        gate.open();
        CHECK(chain.results(batches, mine) == chain_results(stages, words, batches_from(0, batches)));
    });
}

TEST_CASE("External streams: the stage runs on it, the other stages on streams of the pipeline's") {
    const BasicStream<B> mine;
    Chain<B> chain(stages, words, batches);
    for (std::size_t stage = 0; stage < stages; ++stage) {
        auto overlapped = chain.pipeline<stages>({}, lend(mine, stage));
        for (std::size_t other = 0; other < stages; ++other)
            CHECK((overlapped.stream(other) == mine) == (other == stage));
        auto serial = chain.pipeline<stages>({.schedule = Schedule::serial}, lend(mine, stage));
        CHECK((serial.stream(0) == mine) == (stage == 0));
        CHECK(serial.stream(1) == serial.stream(0));
        CHECK(serial.stream(2) == serial.stream(0));
    }
    mine.sync(); // it is still the caller's
}

TEST_CASE("External streams: a stage on one has one lane") {
    const BasicStream<B> mine;
    for (const int lanes : {2, 3}) {
        const auto make = [&] {
            Chain<B> chain(stages, words, batches);
            StageOptions<B> options{.stream = mine};
            options.lanes = lanes;
            (void)chain.pipeline<stages>({}, {options, {}, {}});
        };
        CHECK(contains(text_of(make), "a stage on an external stream has 1 lane, and " +
                                          std::to_string(lanes) + " were asked for"));
    }
}

TEST_CASE("External streams: one stream may serve several stages") {
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> mine;
    Delay::set({.seed = 7});
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        Chain<B> chain(stages, words, batches);
        make_end_slow(chain);
        auto options = lend(mine, 0);
        options[2].stream = mine;
        auto pipeline = chain.pipeline<stages>({.schedule = schedule}, options);
        set_memory(chain, mine, 3);
        submit_from(pipeline, inputs, 0, batches);
        pipeline.flush();
        CHECK(chain.results(batches, mine) ==
              chain_results(stages, words, batches_from(0, batches), repeated(3)));
    }
}

TEST_CASE("External streams: stages that share one are in its order, a reader and what it reads") {
    check_one_stream<DagStage{0, true}, DagStage{from(0), false, false}>({0, 1});
    check_one_stream<DagStage{0, true}, DagStage{from(0)}, DagStage{from(1)}>({0, 1, 2});
}

TEST_CASE("External streams: stages that share one are in its order, with others in between") {
    check_one_stream<DagStage{0, true}, DagStage{from(0)}, DagStage{from(1)},
                     DagStage{from(2), false, false}>({0, 3});
    check_one_stream<DagStage{0, true}, DagStage{from(0)}, DagStage{from(1)}, DagStage{from(2), true, false}>(
        {1, 3}, 2);
}

TEST_CASE(
    "External streams: stages that share one are in its order, where neither reads the other's output") {
    check_one_stream<DagStage{0, true}, DagStage{from(0)}, DagStage{from(0)},
                     DagStage{from(1) | from(2), false, false}>({1, 2}, 0);
    // The later one has less to wait for, and would be ahead.
    check_one_stream<DagStage{0, true}, DagStage{from(0), false, false}, DagStage{0, true, false}>({1, 2});
    check_one_stream<DagStage{0, true, false}, DagStage{0, true, false}, DagStage{0, true, false}>({0, 1, 2});
}

TEST_CASE("External streams: the pipeline's end waits for its work on them") {
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> mine;
    for_each_place([&](const PipelineOptions& options, std::size_t stage) {
        if (options.schedule == Schedule::serial && stage > 0)
            return; // then nothing runs on it
        Chain<B> chain(stages, words, batches);
        make_end_slow(chain);
        {
            auto pipeline = chain.pipeline<stages>(options, lend(mine, stage));
            submit_from(pipeline, inputs, 0, batches);
        }
        CHECK(mine.is_done());
        CHECK(chain.results(batches) == chain_results(stages, words, batches_from(0, batches)));
    });
}

TEST_CASE("External streams: a failed stage leaves them drained too") {
    const Inputs<B> inputs(batches, words);
    const BasicStream<B> mine;
    for_each_place([&](const PipelineOptions& options, std::size_t stage) {
        Chain<B> chain(stages, words, batches);
        chain.after = [&](std::size_t at_stage, Ref stream, std::size_t batch) {
            if (at_stage == stage && batch == 1) {
                ops::spin(stream.get(), 2000);
                throw std::runtime_error("no");
            }
        };
        auto pipeline = chain.pipeline<stages>(options, lend(mine, stage));
        CHECK_THROWS_AS(submit_from(pipeline, inputs, 0, batches), Error);
        CHECK(pipeline.stream(stage).is_done());
        pipeline.reset();
        chain.after = nullptr;
        chain.clear();
        set_memory(chain, mine, 8);
        submit_from(pipeline, inputs, 0, batches);
        pipeline.flush();
        CHECK(chain.results(batches, mine) ==
              chain_results(stages, words, batches_from(0, batches), repeated(8)));
    });
}

TEST_CASE("Streams that the pipeline makes have the priority that the stage asks for") {
    const int priority = std::is_same_v<TestBackend, Host> ? -1 : B::priorities().greatest;
    Chain<B> chain(2, words, 1);
    auto pipeline = chain.pipeline<2>({}, {StageOptions<B>{.priority = priority}, StageOptions<B>{}});
    CHECK(pipeline.stream(0).priority() == priority);
    CHECK(pipeline.stream(1).priority() == 0);
    CHECK(contains_all(text_of([&] { (void)pipeline.stream(2); }),
                       {"stage 2", "of a pipeline of 2 stages", "counted from 0"}));
}

} // namespace pipeline_external_streams
