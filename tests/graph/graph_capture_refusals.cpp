// Contract 6: work that GraphCapture cannot capture or may not replay, and what the caller is told.
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/capture_case.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
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
            to.sync();
        });
        CHECK_FALSE(replay.replayed());
    }
    CHECK(steps.values() == Steps::expected(5));
    CHECK(graphs.counters().refusals == 1);
    CHECK(told_times == 1);
    CHECK(contains(told, "capture refused"));
    CHECK(graphs.refusal({}) == told);
    CHECK(graphs.first_refusal() == told);
    CHECK(graphs.graph({}) == nullptr);
}

TEST_CASE("GraphCapture: a comparison that finds a change says so, and what has changed is what runs") {
    BasicStream<B> stream;
    DeviceBuffer<unsigned char, B> buffer(16);
    GraphCapture<NoKey, B> graphs{{.check = false, .comparisons = 2}};
    unsigned char value = 1;
    for (int run = 0; run < 3; ++run) {
        graphs.run(stream, [&](Ref to) { fill_bytes(to, buffer, value); });
        CHECK(graphs.first_refusal().empty());
    }
    value = 2;
    graphs.run(stream, [&](Ref to) { fill_bytes(to, buffer, value); });
    CHECK(graphs.counters().changes == 1);
    CHECK(graphs.counters().refusals == 0);
    CHECK(
        contains(graphs.first_refusal(), "the work under a key has changed since it was captured, in the "));
    std::vector<unsigned char> bytes(buffer.size());
    copy_and_wait(stream, bytes, buffer);
    CHECK(bytes == std::vector<unsigned char>(16, 2));
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

TEST_CASE(
    "GraphCapture: what the work throws while it is captured is the caller's, and the next run tries again") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{listening()};
    bool throws = false;
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        if (throws)
            throw std::runtime_error("just now");
    };
    graphs.run(steps.stream, work);
    throws = true;
    for (int time = 0; time < 2; ++time)
        CHECK_THROWS_WITH_AS(graphs.run(steps.stream, work), "just now", std::runtime_error);
    CHECK_FALSE(capturing());
    CHECK(steps.values() == Steps::expected(1)); // nothing of it has run
    throws = false;
    CHECK(graphs.run(steps.stream, work).replayed());
    CHECK(graphs.run(steps.stream, work).replayed());
    CHECK(steps.values() == Steps::expected(3));

    throws = true;
    CHECK_THROWS_WITH_AS(graphs.recapture(steps.stream, NoKey{}, work), "just now", std::runtime_error);
    CHECK_THROWS_WITH_AS(graphs.run(steps.stream, work), "just now", std::runtime_error); // captures anew
    throws = false;
    CHECK(graphs.run(steps.stream, work).replayed());
    CHECK(graphs.counters().captures == 2);
    CHECK(graphs.counters().updates == 1);
    CHECK(steps.values() == Steps::expected(4));
    CHECK(told_times == 0);
    CHECK(graphs.counters().refusals == 0);
    CHECK(graphs.refusal({}).empty());
}

TEST_CASE("GraphCapture: an Error of the work's own stays one, also with a fork that is not joined") {
    Steps steps;
    const BasicStream<B> side;
    BasicEvent<B> forked;
    GraphCapture<NoKey, B> graphs{listening({.warmup = 0})};
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        forked.record(to);
        side.wait(forked);
        throw Error("no such layer");
    };
    for (int time = 0; time < 2; ++time) {
        CHECK(text_of([&] { graphs.run(steps.stream, work); }) == "no such layer");
        CHECK(text_of([&] { (void)capture(steps.stream, work); }) == "no such layer");
    }
    CHECK(told_times == 0);
    CHECK(graphs.run(steps.stream, steps.work()).replayed());
    CHECK(steps.values() == Steps::expected(1));
}

TEST_CASE("GraphCapture: what a forbidden call makes the work throw is a refusal") {
    Steps steps;
    GraphCapture<NoKey, B> graphs{listening({.warmup = 0})};
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        try {
            to.sync();
        } catch (const Error&) {
            throw std::runtime_error("the library's own words");
        }
    };
    CHECK_FALSE(graphs.run(steps.stream, work).replayed());
    CHECK(told_times == 1);
    CHECK(contains(told, "the library's own words"));
    CHECK(steps.values() == Steps::expected(1));
}

TEST_CASE("GraphCapture: eager work that throws leaves its key as it was") {
    Steps steps;
    GraphCapture<NoKey, B> others{listening()};
    CHECK_THROWS_AS(others.run(steps.stream, [&](Ref) { throw std::runtime_error("always"); }),
                    std::runtime_error);
    others.run(steps.stream, steps.work());
    CHECK(others.run(steps.stream, steps.work()).replayed());
    CHECK(steps.values() == Steps::expected(2));
}

TEST_CASE("GraphCapture: the first refusal stays the first, whichever key is refused later") {
    Steps steps;
    GraphCapture<int, B> graphs{listening()};
    CHECK(graphs.first_refusal().empty());
    const auto refused = [&](int key, const char* why) {
        for (int run = 0; run < 2; ++run) {
            (void)graphs.run(steps.stream, key, [&](Ref to) {
                if (capturing())
                    throw detail::NotCapturable{why, false};
                steps.enqueue(to);
            });
        }
        return graphs.refusal(key);
    };
    CHECK(refused(1, "the one thing") == "capture refused: the one thing");
    CHECK(graphs.first_refusal() == "capture refused: the one thing");
    CHECK(refused(2, "another thing") == "capture refused: another thing");
    CHECK(graphs.first_refusal() == "capture refused: the one thing");
    CHECK(steps.values() == Steps::expected(4));
}

TEST_CASE("GraphCapture: work may say that it cannot be captured") {
    Steps steps;
    for (const bool quiet : {false, true}) {
        CAPTURE(quiet);
        steps.clear();
        GraphCapture<NoKey, B> graphs{listening()};
        int captures = 0;
        const auto work = [&](Ref to) {
            if (capturing()) {
                ++captures;
                throw detail::NotCapturable{"the step has a CPU stage", quiet};
            }
            steps.enqueue(to);
        };
        for (int run = 0; run < 4; ++run)
            CHECK_FALSE(graphs.run(steps.stream, work).replayed());
        CHECK(captures == 1); // the key runs eagerly for good
        CHECK(graphs.counters().refusals == (quiet ? 0 : 1));
        CHECK(told_times == (quiet ? 0 : 1));
        CHECK(told == (quiet ? "" : "capture refused: the step has a CPU stage"));
        CHECK(graphs.refusal({}) == "capture refused: the step has a CPU stage");
        CHECK(steps.values() == Steps::expected(4));
        CHECK(text_of([&] { (void)capture(steps.stream, work); }) ==
              "capture refused: the step has a CPU stage");
    }
}

TEST_CASE("GraphCapture: another thread's work on the caller's stream is none of a capture's") {
    Steps steps;
    DeviceBuffer<Word, B> other(words);
    PinnedBuffer<Word, B> seen(words);
    fill_bytes(steps.stream, other, 0);
    steps.stream.sync();
    int captures = 0;
    std::string trouble;
    const auto work = [&](Ref to) {
        steps.enqueue(to);
        if (!capturing())
            return;
        ++captures;
        std::thread([&] {
            trouble += text_of([&] {
                fill_bytes(steps.stream, other, static_cast<unsigned char>(captures));
                copy(steps.stream, seen, other);
                steps.stream.sync(); // it runs at once
            });
        }).join();
        CHECK((seen[0] & 0xffU) == static_cast<Word>(captures));
        steps.enqueue(to);
    };
    GraphCapture<NoKey, B> graphs{listening()};
    graphs.run(steps.stream, work);
    graphs.run(steps.stream, work);
    CHECK(captures == 1);
    CHECK(told == "");
    REQUIRE(graphs.graph({}) != nullptr);
    CHECK(graphs.graph({})->nodes() == 2);
    CHECK(capture(steps.stream, work).nodes() == 2);
    CHECK(captures == 2);
    CHECK(trouble == "");
    CHECK(steps.values() == Steps::expected(3));
}

TEST_CASE("GraphCapture: an unjoined fork and an empty capture are refused") {
    Steps steps;
    BasicStream<B> side;
    BasicEvent<B> forked;
    DeviceBuffer<Word, B> other(words);
    fill_bytes(side, other, 0);
    side.sync();
    GraphCapture<int, B> graphs{listening()};
    for (int run = 0; run < 3; ++run) {
        graphs.run(steps.stream, 0, [&](Ref to) {
            steps.enqueue(to);
            forked.record(to);
            side.wait(forked);
            ops::step(side.get(), other.data(), steps.in.data(), other.data(), words);
        });
        side.sync(); // it was not joined
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
    other.sync();
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
                stream.sync();
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
    CAPTURE(told);
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
    times = 0;
    CHECK(contains(text_of([&] { graphs.run(steps.stream, work); }),
                   "captured again to be compared with its graph, was refused: nothing was captured"));
    CHECK(steps.values() == Steps::expected(3));
}

TEST_CASE("GraphCapture: bad options") {
    CHECK(contains(text_of([] { GraphCapture<int, B> graphs{{.capacity = 0}}; }),
                   "1 to 1048576 executables, got 0"));
    CHECK(contains(text_of([] { GraphCapture<int, B> graphs{{.capacity = SIZE_MAX}}; }),
                   "1 to 1048576 executables, got 18446744073709551615"));
    CHECK(contains(text_of([] { GraphCapture<int, B> graphs{{.warmup = -1}}; }), "got -1"));
    CHECK(contains(text_of([] { GraphCapture<int, B> graphs{{.comparisons = -1}}; }), "got -1"));
    const CaptureOptions bad{.mode = static_cast<CaptureMode>(3)};
    const std::string expected =
        "CaptureOptions::mode is 3, which has no name; expected this_thread, global or relaxed";
    CHECK(text_of([&] { GraphCapture<int, B> graphs{{.capture = bad}}; }) == expected);
    const BasicStream<B> stream;
    CHECK(text_of([&] {
              (void)capture(
                  stream.ref(), [](BasicStreamRef<B>) {}, bad);
          }) == expected);
}

TEST_CASE("GraphCapture: keys that never come again take no places in the cache") {
    Steps steps;
    GraphCapture<int, B> graphs{listening({.give_up_after = 5})};
    for (int run = 0; run < 20; ++run)
        graphs.run(steps.stream, run, steps.work());
    CHECK(graphs.size() == 0);
    CHECK(told_times == 1);
    CHECK(contains(told, "do not come again"));
    CHECK(graphs.run(steps.stream, 3, steps.work()).replayed());
    CHECK(graphs.counters().captures == 1);
    CHECK(steps.values() == Steps::expected(21));
}

} // namespace graph_graph_capture_refusals
