// GraphCapture: any callable as a graph, captured once a key, replayed afterwards.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/stream_ops.hpp"

namespace graph_graph_capture {

using namespace sluice;
using namespace sluice::test;

namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 100;

/// Some words that steps change, and what a plain loop makes of them.
struct Steps {
    Steps() : in(words, stream), out(words, stream), memory(words, stream) {
        clear();
        enqueue(stream); // loads the kernel, which a capture without warm-up would have to wait for
        clear();
    }
    void clear() {
        std::vector<Word> values(words);
        for (std::size_t i = 0; i < words; ++i)
            values[i] = static_cast<Word>(i * 31 + 7);
        copy_and_wait(stream, in, values);
        fill_bytes(stream, memory, 0);
        fill_bytes(stream, out, 0xee);
        stream.synchronize();
    }
    void enqueue(Ref to) { ops::step(to.native(), out.data(), in.data(), memory.data(), words); }
    auto work() {
        return [this](Ref to) { enqueue(to); };
    }
    std::vector<Word> values() {
        std::vector<Word> result(words);
        copy_and_wait(stream, result, memory);
        return result;
    }
    static std::vector<Word> expected(int runs) {
        std::vector<Word> memory(words, 0);
        for (int run = 0; run < runs; ++run) {
            for (std::size_t i = 0; i < words; ++i)
                memory[i] = next_memory(memory[i], static_cast<Word>(i * 31 + 7));
        }
        return memory;
    }

    BasicStream<B> stream;
    DeviceBuffer<Word, B> in, out, memory;
};

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

TEST_CASE("GraphCapture: the first call runs and captures, later ones replay; each does the work once") {
    for (const int warmup : {0, 1, 3}) {
        CAPTURE(warmup);
        Steps steps;
        int calls = 0;
        GraphCapture<NoKey, B> graphs{{.warmup = warmup}};
        for (int run = 0; run < 10; ++run) {
            const Replay replay = graphs.run(steps.stream, [&](Ref to) {
                ++calls;
                steps.enqueue(to);
            });
            CHECK(replay.replayed() == (run >= warmup));
        }
        CHECK(steps.values() == Steps::expected(10));
        CHECK(graphs.counters().captures == 1);
        CHECK(graphs.counters().instantiations == 1);
        CHECK(graphs.counters().replays == static_cast<std::uint64_t>(10 - warmup));
        CHECK(graphs.counters().refusals == 0);
        CHECK(calls == warmup + 1);
    }
}

TEST_CASE("GraphCapture: keys have graphs of their own, and the least recently used one makes way") {
    Steps steps;
    GraphCapture<std::string, B> graphs{{.capacity = 2}};
    const auto run = [&](const std::string& key) {
        return graphs.run(steps.stream, key, steps.work()).replayed();
    };
    CHECK_FALSE(run("a"));
    CHECK_FALSE(run("b"));
    CHECK(run("a"));
    CHECK_FALSE(run("c")); // b makes way
    CHECK(run("a"));
    CHECK(run("c"));
    CHECK_FALSE(run("b")); // a makes way
    CHECK(run("c"));
    CHECK(graphs.counters().evictions == 2);
    CHECK(graphs.counters().captures == 4);
    // The work is of one shape, so that executables are updated instead of made.
    CHECK(graphs.counters().instantiations == 2);
    CHECK(graphs.counters().updates == 2);
    CHECK(graphs.size() == 2);
    CHECK(graphs.graph("a") == nullptr);
    REQUIRE(graphs.graph("b") != nullptr);
    CHECK(graphs.executable("b")->native() != nullptr);
    CHECK(steps.values() == Steps::expected(8));
}

TEST_CASE("GraphCapture: where the driver cannot update, a new executable is made") {
    Steps steps;
    GraphCapture<int, B> graphs{{.capacity = 1}};
    const auto repeated = [&](Ref to, int times) {
        for (int time = 0; time < times; ++time)
            steps.enqueue(to);
    };
    for (const int times : {1, 3, 2}) {
        for (int run = 0; run < 2; ++run)
            graphs.run(steps.stream, times, [&](Ref to) { repeated(to, times); });
    }
    CHECK(steps.values() == Steps::expected(12));
    CHECK(graphs.counters().instantiations == 3);
    CHECK(graphs.counters().updates == 0);
}

TEST_CASE("GraphCapture: recapture takes what has changed") {
    Steps steps;
    DeviceBuffer<Word, B> other(words);
    fill_bytes(steps.stream, other, 0);
    GraphCapture<NoKey, B> graphs;
    graphs.run(steps.stream, steps.work());
    graphs.run(steps.stream, steps.work());
    Word* memory = other.data();
    const auto moved = [&](Ref to) {
        ops::step(to.native(), steps.out.data(), steps.in.data(), memory, words);
    };
    graphs.recapture(steps.stream, NoKey{}, moved);
    graphs.run(steps.stream, moved);
    CHECK(steps.values() == Steps::expected(2));
    std::vector<Word> values(words);
    copy_and_wait(steps.stream, values, other);
    CHECK(values == Steps::expected(2));
    CHECK(graphs.counters().updates == 1);
    CHECK(graphs.counters().instantiations == 1);
}

TEST_CASE("GraphCapture: forks within the work become edges, and the graph can be looked at") {
    Steps steps;
    BasicStream<B> side;
    BasicEvent<B> forked, joined;
    DeviceBuffer<Word, B> left(words), right(words);
    fill_bytes(steps.stream, left, 0);
    fill_bytes(steps.stream, right, 0);
    GraphCapture<NoKey, B> graphs;
    const auto forking = [&](Ref to) {
        steps.enqueue(to);
        forked.record(to);
        side.wait(forked);
        ops::step(side.native(), steps.in.data(), steps.in.data(), left.data(), words);
        joined.record(side);
        to.wait(joined);
        ops::step(to.native(), right.data(), steps.in.data(), right.data(), words);
    };
    for (int run = 0; run < 4; ++run)
        graphs.run(steps.stream, forking);
    steps.stream.synchronize();
    REQUIRE(graphs.graph({}) != nullptr);
    CHECK(graphs.graph({})->nodes() == 3);
    CHECK(graphs.graph({})->edges() == 3);
    const std::string path = std::string("graph_capture_") + B::name + ".dot";
    graphs.graph({})->write_dot(path);
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    CHECK(contains(text, "digraph"));
    std::remove(path.c_str());
}

TEST_CASE("GraphCapture: a replay creates and allocates nothing") {
    Steps steps;
    GraphCapture<int, B> graphs;
    for (int run = 0; run < 8; ++run)
        graphs.run(steps.stream, run % 2, steps.work());
    steps.stream.synchronize();
    const HeapCount heap;
    const ObjectCounts& counts = B::counts();
    const auto made = [&] {
        return counts.streams.created + counts.events.created + counts.device_allocations.created +
               counts.pinned_allocations.created + counts.graphs.created + counts.executables.created;
    };
    const std::uint64_t before = made();
    for (int run = 0; run < 200; ++run)
        graphs.run(steps.stream, run % 2, steps.work());
    const std::uint64_t allocations = heap.allocations();
    steps.stream.synchronize();
    CHECK(made() == before);
    if (std::is_same_v<B, Host>)
        CHECK(allocations == 0);
    CHECK(steps.values() == Steps::expected(208));
}

TEST_CASE("GraphCapture: graphs and executables are all given back") {
    const auto graphs_before = B::counts().graphs.alive.load();
    const auto executables_before = B::counts().executables.alive.load();
    {
        Steps steps;
        GraphCapture<int, B> graphs{{.capacity = 3}};
        for (int run = 0; run < 30; ++run)
            graphs.run(steps.stream, run % 5, steps.work());
        // In flight while they are destroyed.
        for (int run = 0; run < 20; ++run)
            graphs.run(steps.stream, 4, steps.work());
        graphs.clear();
        CHECK(graphs.size() == 0);
        CHECK(steps.values() == Steps::expected(50));
    }
    CHECK(B::counts().graphs.alive.load() == graphs_before);
    CHECK(B::counts().executables.alive.load() == executables_before);
}

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

TEST_CASE("GraphCapture: outputs that a later run has overwritten are known") {
    Steps steps;
    GraphCapture<int, B> graphs;
    const Replay first = graphs.run(steps.stream, 0, steps.work());
    first.require_current();
    const Replay other = graphs.run(steps.stream, 1, steps.work());
    CHECK(first.is_current());
    const Replay second = graphs.run(steps.stream, 0, steps.work());
    CHECK_FALSE(first.is_current());
    CHECK(contains(text_of([&] { first.require_current(); }), "overwritten"));
    second.require_current();
    other.require_current();
}

TEST_CASE("GraphCapture: within another capture the work becomes part of it") {
    Steps steps;
    GraphCapture<NoKey, B> inner, outer;
    for (int run = 0; run < 5; ++run) {
        outer.run(steps.stream, [&](Ref to) {
            inner.run(to, steps.work());
            steps.enqueue(to);
        });
    }
    CHECK(steps.values() == Steps::expected(10));
    CHECK(outer.graph({})->nodes() == 2);
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

} // namespace graph_graph_capture
