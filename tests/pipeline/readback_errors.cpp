// Readbacks whose handler throws, pushes or resets, or whose calls fail.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "pipeline/readback_case.hpp"
#include "support/alive.hpp"
#include "support/faulty_backend.hpp"
#include "support/gate.hpp"

namespace pipeline_readback_errors {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::readback_case;

TEST_CASE("Contract 5: a handler that throws within a stage fails the pipeline, and reset makes it usable") {
    Delay::set({.one_in = 0});
    const Inputs<B> inputs(4, words);
    Chain<B> chain(2, words, 4);
    bool broken = true;
    std::size_t results = 0;
    Readback<Word, B> readback(
        words,
        [&](std::size_t, std::span<const Word>) {
            ++results;
            if (broken)
                throw std::domain_error("loss is not a number");
        },
        1);
    chain.after = [&](std::size_t stage, BasicStreamRef<B> stream, std::size_t) {
        if (stage == 1)
            readback.push(stream, chain.memory(1));
    };
    auto pipeline = chain.pipeline<2>();
    pipeline.submit(inputs[0]).stays();
    const Caught error([&] { pipeline.submit(inputs[1]).stays(); });
    CHECK(error.text() == "stage 'second', batch 1: its callable threw: loss is not a number");
    CHECK(error.nests<std::domain_error>([](const auto&) { return true; }));
    CHECK(results == 1);

    broken = false;
    pipeline.reset();
    readback.reset();
    CHECK(readback.pushed() == 0);
    chain.clear();
    results = 0;
    for (std::size_t batch = 0; batch < 4; ++batch)
        pipeline.submit(inputs[batch]).stays();
    pipeline.finish();
    readback.finish();
    CHECK(results == 4);
    CHECK(chain.results(4) == chain_results(2, words, batches_from(0, 4)));
}

TEST_CASE("Contract 5: a handler that throws in a replay of whole steps fails the pipeline, and is named") {
    Delay::set({.one_in = 0});
    std::size_t results = 0;
    Readback<Word, B> readback(words, [&](std::size_t, std::span<const Word>) {
        if (++results == 5)
            throw std::domain_error("loss is not a number");
    });
    using Values = DeviceBuffer<Word, B>;
    Pipeline pipeline{Stages{Stage{"load", [](BasicStreamRef<B> stream, const PinnedBuffer<Word, B>& in,
                                              Values& out) { copy(stream, out, in); }},
                             Stage{"train", [&](BasicStreamRef<B> stream,
                                                const Values& in) { readback.push(stream, in.span()); }}},
                      Slots{[](int) { return Values(words); }},
                      PipelineOptions{.schedule = Schedule::graphed}};
    const PinnedBuffer<Word, B> batch(words);
    const Caught error([&] {
        for (int step = 0; step < 40; ++step)
            pipeline.submit(batch).stays();
    });
    CHECK(error.text() == "what is of no stage threw, such as a Readback's handler: loss is not a number");
    CHECK(error.nests<std::domain_error>([](const auto&) { return true; }));
    CHECK(pipeline.failed());
    CHECK(pipeline.graph_counters().replays > 0);

    pipeline.reset();
    readback.reset();
    for (int step = 0; step < 40; ++step)
        pipeline.submit(batch).stays();
    pipeline.finish();
    readback.finish();
    CHECK(results == 5 + 40);
}

TEST_CASE(
    "Contract 5: poll hands over the results of the batches before the one that failed, before a reset") {
    Delay::set({.seed = 9, .one_in = 2, .microseconds = 300});
    const Inputs<B> inputs(4, words);
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped}) {
        CAPTURE(std::string(to_string(schedule)));
        Chain<B> chain(2, words, 4);
        std::vector<std::size_t> seen;
        Readback<Word, B> readback(
            words, [&](std::size_t index, std::span<const Word>) { seen.push_back(index); }, 8);
        chain.after = [&](std::size_t stage, BasicStreamRef<B> stream, std::size_t batch) {
            if (stage == 1 && batch == 3)
                throw std::domain_error("loss is not a number");
            if (stage == 1)
                readback.push(stream, chain.memory(1));
        };
        auto pipeline = chain.pipeline<2>({.schedule = schedule});
        const Caught error([&] {
            for (std::size_t batch = 0; batch < 4; ++batch)
                pipeline.submit(inputs[batch]).stays();
        });
        REQUIRE(error);
        CHECK(error->batch() == 3);
        readback.poll();
        CHECK(seen == std::vector<std::size_t>{0, 1, 2});
        pipeline.reset();
        readback.reset();
        CHECK(seen.size() == 3);
    }
}

TEST_CASE("Contract 5: any one call of a readback fails: an Error, and no copy outlives its memory") {
    using F = Faulty<TestBackend>;
    const Alive before = alive_now<F>();
    {
        const BasicStream<F> stream;
        Pusher<F> push(stream);
        bool reached = true;
        for (long call = 1; reached && call < 1000; ++call) {
            CAPTURE(call);
            Fault::arm(call);
            try {
                Notes notes;
                Readback<Word, F> readback(words, notes.handler(), 2);
                for (Word value = 0; value < 5; ++value) {
                    ops::spin(stream.get(), 500);
                    push(readback, value);
                }
                readback.finish();
                CHECK(notes.values == numbers(5));
            } catch (const Error& error) {
                CHECK(error.name() == Fault::name);
            }
            reached = Fault::calls_made() >= call;
            Fault::disarm();
        }
        CHECK_FALSE(reached);
    }
    CHECK(alive_now<F>() == before);
}

TEST_CASE("Readback: a handler that pushes leaves the values that it was given as they are") {
    Delay::set({.one_in = 0});
    for (const int slots : {1, 2, 4}) {
        CAPTURE(slots);
        const BasicStream<B> stream;
        Pusher<B> push(stream), push_within(stream);
        std::vector<Word> seen;
        std::string refused;
        Readback<Word, B>* self = nullptr;
        Readback<Word, B> readback(
            words,
            [&](std::size_t, std::span<const Word> values) {
                const std::vector<Word> before(values.begin(), values.end());
                if (values[0] < 100) {
                    refused = text_of([&] { push_within(*self, values[0] + 100); });
                    self->poll(); // calls no handler within this one
                    CHECK(contains(text_of([&] { self->finish(); }),
                                   "finish was called from within the handler"));
                }
                stream.sync();
                CHECK(std::vector<Word>(values.begin(), values.end()) == before);
                seen.push_back(values[0]);
            },
            slots);
        self = &readback;
        Gate<B> gate; // so that nothing arrives before both are pushed, where there is room for both
        if (slots > 1)
            gate.hold(stream);
        push(readback, 1);
        push(readback, 2);
        gate.open();
        readback.finish();
        if (slots == 1) {
            CHECK(seen == std::vector<Word>{1, 2});
            CHECK(contains(refused, "a push from within the handler found no free slot, since all 1"));
        } else if (slots == 4) {
            CHECK(seen == std::vector<Word>{1, 2, 101, 102});
        } else {
            CHECK(std::count(seen.begin(), seen.end(), 1) == 1);
            CHECK(std::count(seen.begin(), seen.end(), 2) == 1);
        }
    }
}

TEST_CASE("Readback: a reset within the handler leaves the values that it was given as they are") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Pusher<B> push(stream);
    Readback<Word, B>* self = nullptr;
    std::vector<Word> seen;
    Readback<Word, B> readback(
        words,
        [&](std::size_t index, std::span<const Word> values) {
            CHECK(index == 0);
            seen.push_back(values[0]);
            if (values[0] == 1) {
                self->reset();
                push(*self, 3);
                push(*self, 4);
                CHECK(contains(text_of([&] { push(*self, 5); }), "found no free slot"));
                self->reset();
                CHECK(values[0] == 1);
            }
        },
        3);
    self = &readback;
    Gate<B> gate; // so that nothing arrives before both are pushed
    gate.hold(stream);
    push(readback, 1);
    push(readback, 2);
    gate.open();
    readback.finish();
    push(readback, 6);
    readback.finish();
    CHECK(seen == std::vector<Word>{1, 6});
}

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Contract 5: after a fault of the work that was read back, reset makes a readback usable") {
    Delay::set({.one_in = 0});
    const BasicStream<B> stream;
    Notes notes;
    Pusher<B> push(stream);
    Readback<Word, B> readback(words, notes.handler(), 2);
    push(readback, 0);
    stream.enqueue([] { throw std::range_error("bad pixel"); });
    push(readback, 1);
    CHECK(contains(text_of([&] { readback.finish(); }), "bad pixel"));
    CHECK(notes.values == numbers(1));
    B::clear_failure(stream.get());
    readback.reset();
    notes.values.clear();
    for (Word value = 0; value < 5; ++value)
        push(readback, value);
    readback.finish();
    CHECK(notes.values == numbers(5));
}
#endif

#if !defined(SLUICE_TEST_CUDA)
TEST_CASE("Readback: pushes in the body of a loop keep it from being captured, and none is lost") {
    const BasicStream<Host> stream;
    DeviceBuffer<Word, Host> left(1);
    std::vector<Word> seen;
    Readback<Word, Host> readback(1, [&](auto, std::span<const Word> value) { seen.push_back(value[0]); });
    static std::string reason;
    reason.clear();
    GraphOptions options;
    options.on_refusal = [](const char* text) { reason += text; };
    GraphCapture<NoKey, Host> graph{options};
    BasicCondition<Host> again;
    std::vector<Word> expected;
    for (int run = 0; run < 4; ++run) {
        copy_and_wait(stream, left, std::vector<Word>{3});
        graph.run(stream.ref(), [&](HostStreamRef s) {
            while_nonzero(s, again, [&](HostStreamRef body) {
                body.enqueue(
                    [setter = again.setter(body), words_left = left.data()] { setter.set(--*words_left); });
                readback.push(body, left.span());
            });
        });
        expected.insert(expected.end(), {2, 1, 0});
    }
    readback.finish();
    CHECK(seen == expected);
    CHECK(graph.counters().replays == 0);
    CHECK(contains(reason, "the body of a branch or a loop"));
}
#endif

} // namespace pipeline_readback_errors
