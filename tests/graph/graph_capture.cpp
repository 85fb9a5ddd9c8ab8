// GraphCapture: any callable as a graph, captured once a key, replayed afterwards.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/capture_case.hpp"
#include "support/backend.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/stream_ops.hpp"

namespace graph_graph_capture {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::capture_case;

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

} // namespace graph_graph_capture
