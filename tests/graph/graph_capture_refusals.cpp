// GraphCapture: work that cannot be captured or may not be replayed, and what the caller is told.
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/capture_case.hpp"
#include "support/backend.hpp"
#include "support/error_text.hpp"
#include "support/stream_ops.hpp"

namespace graph_graph_capture_refusals {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::capture_case;

namespace {

std::string told;
int told_times = 0;
void listen(const char* reason) {
    told = reason;
    ++told_times;
}
GraphOptions listening(GraphOptions options = {}) {
    told.clear();
    told_times = 0;
    options.on_refusal = &listen;
    return options;
}

} // namespace

TEST_CASE("GraphCapture: work that waits runs eagerly, and the reason is told once") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{listening()};
    for (int run = 0; run < 5; ++run) {
        const Replay replay = graphs.run(steps.stream, [&](Ref to) {
            steps.enqueue(to);
            to.synchronize();
        });
        CHECK_FALSE(replay.replayed());
    }
    CHECK(steps.values() == Steps::expected(5));
    CHECK(graphs.counters().refusals == 1);
    CHECK(told_times == 1);
    CHECK(contains(told, "capture refused"));
    CHECK(graphs.refusal({}) == told);
    CHECK(graphs.graph({}) == nullptr);
}

TEST_CASE("GraphCapture: work that allocates without a stream runs eagerly") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{listening()};
    for (int run = 0; run < 3; ++run) {
        graphs.run(steps.stream, [&](Ref to) {
            const DeviceBuffer<Word, B> scratch(10);
            steps.enqueue(to);
        });
    }
    CHECK(steps.values() == Steps::expected(3));
    CHECK(graphs.counters().refusals == 1);
    CHECK(contains(told, "refused"));
}

TEST_CASE("GraphCapture: work that throws in the middle of a capture") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{listening()};
    int calls = 0;
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        if (++calls == 2)
            throw std::runtime_error("just once");
    };
    for (int run = 0; run < 4; ++run)
        graphs.run(steps.stream, work); // the second call is the capture
    CHECK(steps.values() == Steps::expected(4));
    CHECK(contains(told, "just once"));

    // When it runs, what it throws is the caller's.
    GraphCapture<NoKey, B> others{listening()};
    CHECK_THROWS_AS(others.run(steps.stream, [&](Ref) { throw std::runtime_error("always"); }),
                    std::runtime_error);
    steps.clear();
    others.run(steps.stream, steps.work());
    others.run(steps.stream, steps.work());
    CHECK(steps.values() == Steps::expected(2));
}

TEST_CASE("GraphCapture: an unjoined fork and an empty capture are refused") {
    Steps steps;
    BasicStream<B> side;
    BasicEvent<B> forked;
    DeviceBuffer<Word, B> other(words);
    fill_bytes(side, other, 0);
    side.synchronize();
    GraphCapture<int, B> graphs{listening()};
    for (int run = 0; run < 3; ++run) {
        graphs.run(steps.stream, 0, [&](Ref to) {
            steps.enqueue(to);
            forked.record(to);
            side.wait(forked);
            ops::step(side.native(), other.data(), steps.in.data(), other.data(), words);
        });
        side.synchronize(); // nobody has joined it
    }
    CHECK(told_times == 1);
    CHECK(steps.values() == Steps::expected(3));
    graphs.run(steps.stream, 1, [](Ref) {});
    graphs.run(steps.stream, 1, [](Ref) {});
    CHECK(told_times == 2);
    CHECK(contains(told, "nothing was captured"));
}

TEST_CASE("GraphCapture: operations that are missing in the capture are noticed") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{listening()};
    for (int run = 0; run < 3; ++run) {
        graphs.run(steps.stream, [&](Ref to) {
            steps.enqueue(to);
            expect_operations(2);
        });
    }
    CHECK(steps.values() == Steps::expected(3));
    CHECK(contains(told, "left operations out"));
}

TEST_CASE("GraphCapture: operations on another stream than the captured one are noticed") {
    Steps steps;
    BasicStream<B> other;
    DeviceBuffer<Word, B> target(words);
    GraphCapture<NoKey, B> graphs{listening()};
    for (int run = 0; run < 3; ++run) {
        graphs.run(steps.stream, [&](Ref to) {
            steps.enqueue(to);
            copy(other, target, steps.in);
        });
    }
    other.synchronize();
    CHECK(steps.values() == Steps::expected(3));
    CHECK(contains(told, "not being captured"));
}

TEST_CASE("GraphCapture: other threads' calls do not disturb a capture") {
    Steps steps;
    std::atomic<bool> stop{false};
    std::atomic<bool> started{false};
    std::string trouble;
    std::thread other([&] {
        trouble = text_of([&] {
            const BasicStream<B> stream;
            while (!stop) {
                DeviceBuffer<Word, B> buffer(1000);
                PinnedBuffer<Word, B> pinned(1000);
                fill_bytes(stream, buffer, 1);
                copy(stream, pinned, buffer);
                stream.synchronize();
                started = true;
            }
        });
    });
    while (!started)
        std::this_thread::yield();
    GraphCapture<int, B> graphs{listening()};
    for (int run = 0; run < 20; ++run)
        graphs.run(steps.stream, run / 2, [&](Ref to) {
            for (int i = 0; i < 20; ++i)
                steps.enqueue(to);
        });
    stop = true;
    other.join();
    CHECK(trouble.empty());
    CHECK(told.empty());
    CHECK(graphs.counters().captures == 10);
    CHECK(steps.values() == Steps::expected(400));
}

TEST_CASE("GraphCapture: with checking on, work that changes under its key is an error") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{{.check = true}};
    int times = 1;
    const auto work = [&](Ref to) {
        for (int time = 0; time < times; ++time)
            steps.enqueue(to);
    };
    for (int run = 0; run < 3; ++run)
        graphs.run(steps.stream, work);
    times = 2;
    CHECK(contains(text_of([&] { graphs.run(steps.stream, work); }), "changed since it was captured"));
    CHECK(steps.values() == Steps::expected(3));
}

TEST_CASE("GraphCapture: bad options") {
    CHECK(contains(text_of([] { GraphCapture<int, B> graphs{{.capacity = 0}}; }),
                   "at least 1 executable, got 0"));
    CHECK(contains(text_of([] { GraphCapture<int, B> graphs{{.warmup = -1}}; }), "got -1"));
}

TEST_CASE("GraphCapture: keys that never come again are not captured for ever") {
    Steps steps;
    GraphCapture<int, B> graphs{listening({.give_up_after = 5})};
    for (int run = 0; run < 20; ++run)
        graphs.run(steps.stream, run, steps.work());
    CHECK(graphs.counters().captures == 5);
    CHECK_FALSE(graphs.settled());
    CHECK(contains(told, "do not come again"));
    graphs.run(steps.stream, 3, steps.work());
    CHECK(graphs.settled());
    CHECK(steps.values() == Steps::expected(21));
}

} // namespace graph_graph_capture_refusals
