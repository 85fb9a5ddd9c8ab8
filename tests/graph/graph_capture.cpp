// GraphCapture: any callable as a graph, captured when its key comes again, replayed from then on.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/memory/copy.hpp>

#include "graph/capture_case.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/stream_ops.hpp"

namespace graph_graph_capture {

using namespace sluice;
using namespace sluice::test;
using namespace sluice::test::capture_case;

TEST_CASE(
    "GraphCapture: the first run is eager, the second captures, later ones replay; each does the work once") {
    for (const int warmup : {0, 1, 3}) {
        CAPTURE(warmup);
        Steps steps;
        int calls = 0;
        GraphCapture<NoKey, B> graphs{{.warmup = warmup, .check = false}};
        for (int run = 0; run < 10; ++run) {
            const Replay replay = graphs.run(steps.stream, [&](Ref to) {
                ++calls;
                steps.enqueue(to);
            });
            CHECK(replay.replayed() == (run >= warmup));
            CHECK(calls == (run < warmup ? run + 1 : warmup + 1)); // never twice in one run
            CHECK(graphs.counters().captures == (run >= warmup ? 1 : 0));
        }
        CHECK(steps.values() == Steps::expected(10));
        CHECK(graphs.counters().instantiations == 1);
        CHECK(graphs.counters().replays == static_cast<std::uint64_t>(10 - warmup));
        CHECK(graphs.counters().refusals == 0);
    }
}

namespace {

Steps* of_a_function = nullptr;
void work_of_a_function(Ref to) { of_a_function->enqueue(to); }

} // namespace

TEST_CASE("GraphCapture: work is a function, a constant object, or what owns something and returns a value") {
    Steps steps;
    of_a_function = &steps;
    struct Constant {
        Steps& steps;
        void operator()(Ref to) const { steps.enqueue(to); }
    };
    const Constant constant{steps};
    auto owner = [own = std::make_unique<Steps*>(&steps), calls = 0](Ref to) mutable {
        (*own)->enqueue(to);
        return ++calls;
    };
    GraphCapture<int, B> graphs;
    for (int run = 0; run < 5; ++run) {
        graphs.run(steps.stream, 0, work_of_a_function);
        graphs.run(steps.stream, 1, &work_of_a_function);
        graphs.run(steps.stream, 2, constant);
        graphs.run(steps.stream, 3, owner);
    }
    CHECK(steps.values() == Steps::expected(20));
    CHECK(graphs.counters().replays == 16);
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
    CHECK(run("b"));
    CHECK_FALSE(run("c"));
    CHECK(run("b"));
    CHECK(run("c")); // a makes way
    CHECK_FALSE(run("a"));
    CHECK(run("c"));
    CHECK(run("a")); // b makes way
    CHECK(graphs.counters().evictions == 2);
    CHECK(graphs.counters().captures == 4);
    // The work is of one shape, so that executables are updated instead of made.
    CHECK(graphs.counters().instantiations == 2);
    CHECK(graphs.counters().updates == 2);
    CHECK(graphs.size() == 2);
    CHECK(graphs.graph("b") == nullptr);
    REQUIRE(graphs.graph("a") != nullptr);
    CHECK(graphs.executable("a")->get() != nullptr);
    CHECK(steps.values() == Steps::expected(10));
}

TEST_CASE("GraphCapture: a key that never comes again is not captured") {
    Steps steps;
    GraphCapture<int, B> graphs;
    for (int run = 0; run < 20; ++run)
        CHECK_FALSE(graphs.run(steps.stream, run, steps.work()).replayed());
    CHECK(graphs.counters().captures == 0);
    CHECK(graphs.counters().instantiations == 0);
    CHECK(steps.values() == Steps::expected(20));
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
    const auto moved = [&](Ref to) { ops::step(to.get(), steps.out.data(), steps.in.data(), memory, words); };
    graphs.recapture(steps.stream, NoKey{}, moved);
    graphs.run(steps.stream, moved);
    CHECK(steps.values() == Steps::expected(2));
    std::vector<Word> values(words);
    copy_and_wait(steps.stream, values, other);
    CHECK(values == Steps::expected(2));
    CHECK(graphs.counters().updates == 1);
    CHECK(graphs.counters().instantiations == 1);
}

TEST_CASE("GraphCapture: recapture of a key without a graph is a run, and within a capture the work alone") {
    Steps steps;
    GraphCapture<int, B> graphs;
    CHECK_FALSE(graphs.recapture(steps.stream, 1, steps.work()).replayed()); // its first one
    CHECK(graphs.recapture(steps.stream, 1, steps.work()).replayed());
    CHECK(graphs.recapture(steps.stream, 1, steps.work()).replayed());
    CHECK_FALSE(graphs.recapture(steps.stream, 2, steps.work()).replayed());
    CHECK(graphs.counters().captures == 2);
    CHECK(graphs.counters().eager.first_runs == 2);
    CHECK(steps.values() == Steps::expected(4));
    const BasicGraph<B> around =
        capture(steps.stream, [&](Ref to) { CHECK_FALSE(graphs.recapture(to, 1, steps.work()).replayed()); });
    CHECK(graphs.counters().captures == 2);
    const BasicGraphExec<B> executable(around);
    executable.launch(steps.stream);
    CHECK(steps.values() == Steps::expected(5));
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
        ops::step(side.get(), steps.in.data(), steps.in.data(), left.data(), words);
        joined.record(side);
        to.wait(joined);
        ops::step(to.get(), right.data(), steps.in.data(), right.data(), words);
    };
    for (int run = 0; run < 4; ++run)
        graphs.run(steps.stream, forking);
    steps.stream.sync();
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
    GraphCapture<int, B> graphs{{.check = false}};
    for (int run = 0; run < 8; ++run)
        graphs.run(steps.stream, run % 2, steps.work());
    steps.stream.sync();
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
    steps.stream.sync();
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

TEST_CASE("GraphCapture: a run may outlive its key's place in the cache, and the cache") {
    Steps steps;
    std::optional<GraphCapture<int, B>> graphs;
    graphs.emplace(GraphOptions{.capacity = 1});
    const Replay cleared = graphs->run(steps.stream, 0, steps.work());
    CHECK(cleared.is_current());
    graphs->clear();
    CHECK_FALSE(cleared.is_current());
    CHECK(contains(text_of([&] { cleared.require_current(); }), "has left the cache"));
    const Replay evicted = graphs->run(steps.stream, 1, steps.work());
    // So many keys are remembered beside those that have a graph.
    for (int key = 2; key < 18; ++key) {
        CHECK(evicted.is_current());
        graphs->run(steps.stream, key, steps.work());
    }
    const Replay last = graphs->run(steps.stream, 18, steps.work());
    CHECK_FALSE(evicted.is_current());
    CHECK(contains(text_of([&] { evicted.require_current(); }), "has left the cache"));
    graphs->finish();
    graphs.reset();
    CHECK(last.is_current());
    CHECK_FALSE(evicted.is_current());
    CHECK(steps.values() == Steps::expected(19));
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

namespace {

/// Cannot always be compared or copied.
struct Fragile {
    int value;
    bool* breaks;
    Fragile(int of, bool* when) : value(of), breaks(when) {}
    Fragile(const Fragile& other) : value(other.value), breaks(other.breaks) { may_break(); }
    bool operator==(const Fragile& other) const {
        may_break();
        return value == other.value;
    }
    void may_break() const {
        if (*breaks)
            throw Error("this key breaks");
    }
};

} // namespace

TEST_CASE("GraphCapture: what a key throws when it is compared or copied comes out of the run") {
    Steps steps;
    bool breaks = true;
    const Fragile key(1, &breaks);
    GraphCapture<Fragile, B> graphs;
    const auto refused = [&] {
        CHECK(text_of([&] { graphs.run(steps.stream, key, steps.work()); }) == "this key breaks");
    };
    refused(); // copied
    breaks = false;
    for (int run = 0; run < 3; ++run)
        graphs.run(steps.stream, key, steps.work());
    breaks = true;
    refused(); // compared
    CHECK(text_of([&] { (void)graphs.graph(key); }) == "this key breaks");
    CHECK(text_of([&] { (void)graphs.executable(key); }) == "this key breaks");
    CHECK(text_of([&] { (void)graphs.refusal(key); }) == "this key breaks");
    breaks = false;
    CHECK(graphs.run(steps.stream, key, steps.work()).replayed());
    CHECK(steps.values() == Steps::expected(4));
}

} // namespace graph_graph_capture
