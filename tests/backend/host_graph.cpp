// Host graphs: replaying, updating, nodes by hand, and what may go on meanwhile.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/host_graph.hpp"
#include "support/alive.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/on_stream.hpp"

namespace backend_host_graph {

using namespace sluice;
using namespace sluice::test;

namespace {

// Adds `task` behind `after`.
template <class F>
host::Node* add(const OwnedGraph& graph, F&& task, const std::vector<host::Node*>& after = {}) {
    return Host::add_task(graph.get(), after.data(), after.size(), host::Task{std::forward<F>(task)});
}

std::string text_in(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

TEST_CASE("captured work does not run, and then runs as often as it is launched") {
    const HostStream stream;
    int number = 1;
    const OwnedGraph graph = captured(stream, [&] {
        CHECK(Host::is_capturing(stream.native()));
        stream.enqueue([&number] { number *= 3; });
        stream.enqueue([&number] { number += 1; });
    });
    CHECK_FALSE(Host::is_capturing(stream.native()));
    stream.synchronize();
    CHECK(number == 1);
    CHECK(Host::node_count(graph.get()) == 2);
    CHECK(Host::edge_count(graph.get()) == 1);

    const OwnedExecutable executable = instantiated(graph);
    Host::upload(executable.get(), stream.native());
    for (int i = 0; i < 5; ++i)
        launch(executable, stream);
    stream.synchronize();
    CHECK(number == 364); // 1, 4, 13, 40, 121, 364
    std::vector<int> seen;
    seen.reserve(1000);
    for (int i = 0; i < 1000; ++i) { // replays keep their place among other work
        stream.enqueue([&number, i] { number = i; });
        launch(executable, stream);
        stream.enqueue([&] { seen.push_back(number); });
    }
    stream.synchronize();
    REQUIRE(seen.size() == 1000);
    for (int i = 0; i < 1000; ++i)
        CHECK(seen[static_cast<std::size_t>(i)] == 3 * i + 1);
}

TEST_CASE("copies and fills are captured with their memory") {
    const HostStream stream;
    std::array<unsigned char, 4> from{1, 2, 3, 4};
    std::array<unsigned char, 4> to{};
    const OwnedGraph graph = captured(stream, [&] {
        Host::fill_bytes(to.data(), 7, 4, stream.native());
        Host::copy(to.data(), from.data(), 2, CopyKind::host_to_device, stream.native());
    });
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.synchronize();
    CHECK(to == std::array<unsigned char, 4>{1, 2, 7, 7});
    from[0] = 9;
    launch(executable, stream);
    stream.synchronize();
    CHECK(to[0] == 9);
}

TEST_CASE("an executable outlives its graph, and a launch in flight its executable") {
    const HostStream stream;
    const ScopedLatch latch;
    const auto held = std::make_shared<int>(0);
    const Alive before = alive_now<Host>();
    {
        OwnedGraph graph = captured(stream, [&] { stream.enqueue([held] { ++*held; }); });
        OwnedExecutable executable = instantiated(graph);
        graph.reset();
        hold(stream, latch);
        launch(executable, stream);
        launch(executable, stream);
        executable.reset();
    }
    CHECK(held.use_count() > 1);
    latch.open();
    stream.synchronize();
    CHECK(*held == 2);
    CHECK(eventually([&] { return held.use_count() == 1; })); // and nothing is kept for ever
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("graphs and executables are counted") {
    const std::uint64_t graphs = Host::counts().graphs.alive;
    const std::uint64_t executables = Host::counts().executables.alive;
    {
        const OwnedGraph graph(Host::create_graph());
        const OwnedExecutable executable = instantiated(graph);
        CHECK(Host::counts().graphs.alive == graphs + 1);
        CHECK(Host::counts().executables.alive == executables + 1);
    }
    CHECK(Host::counts().graphs.alive == graphs);
    CHECK(Host::counts().executables.alive == executables);
}

TEST_CASE("replaying allocates nothing") {
    const HostStream stream;
    std::array<double, 64> from{};
    std::array<double, 64> to{};
    double sum = 0;
    const OwnedGraph graph = captured(stream, [&] {
        for (int i = 0; i < 20; ++i) {
            Host::copy(to.data(), from.data(), sizeof(to), CopyKind::host_to_device, stream.native());
            stream.enqueue([&sum, big = from] { sum += big[3] + 1; });
        }
    });
    const OwnedExecutable executable = instantiated(graph);
    const auto replay = [&] {
        for (int i = 0; i < 100; ++i)
            launch(executable, stream);
        stream.synchronize();
    };
    replay();
    const HeapCount heap;
    replay();
    CHECK(heap.allocations() == 0);
    CHECK(sum == 4000);
}

TEST_CASE("launches of one executable run in their order and never beside each other, on any stream") {
    const HostStream first;
    const HostStream second;
    const ScopedLatch latch;
    std::vector<int> seen;
    std::atomic<int> inside{0};
    bool alone = true;
    int next = 0;
    const OwnedGraph graph = captured(first, [&] {
        first.enqueue([&] { alone = alone && ++inside == 1; });
        first.enqueue([&] { seen.push_back(next++); });
        first.enqueue([&] { --inside; });
    });
    const OwnedExecutable executable = instantiated(graph);
    hold(first, latch);
    launch(executable, first);
    launch(executable, second);
    bool passed = false;
    second.enqueue([&] { passed = seen.size() == 2; });
    give_it_time();
    CHECK_FALSE(second.done()); // it was launched after the one that is held up
    latch.open();
    second.synchronize();
    CHECK(passed);

    for (int i = 0; i < 500; ++i) {
        launch(executable, first);
        launch(executable, second);
    }
    first.synchronize();
    second.synchronize();
    CHECK(alone);
    REQUIRE(seen.size() == 1002);
    CHECK(seen.back() == 1001);
}

TEST_CASE("several threads may launch one executable") {
    const HostStream streams[3];
    int count = 0;
    const OwnedGraph graph = captured(streams[0], [&] { streams[0].enqueue([&count] { ++count; }); });
    const OwnedExecutable executable = instantiated(graph);
    {
        std::vector<std::thread> threads;
        for (const HostStream& stream : streams) {
            threads.emplace_back([&] {
                for (int i = 0; i < 2000; ++i) // more than a queue holds
                    launch(executable, stream);
                stream.synchronize();
            });
        }
        for (std::thread& thread : threads)
            thread.join();
    }
    CHECK(count == 6000);
}

TEST_CASE("a node that throws fails the stream as a task would, and the rest of the launch is skipped") {
    const HostStream stream;
    const HostStream other;
    int before = 0;
    int behind = 0;
    bool fails = true;
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue([&before] { ++before; });
        stream.enqueue([&fails] {
            if (fails)
                throw std::runtime_error("the lamp went out");
        });
        stream.enqueue([&behind] { ++behind; });
    });
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    launch(executable, stream); // skipped
    CHECK(text_of([&] { stream.synchronize(); }) == "work on a host stream failed: the lamp went out");
    CHECK(before == 1);
    CHECK(behind == 0);

    fails = false;
    launch(executable, other); // neither the executable nor other streams are failed
    other.synchronize();
    Host::clear_failure(stream.native());
    launch(executable, stream);
    stream.synchronize();
    CHECK(behind == 2);
}

TEST_CASE("a graph of the same shape takes the place of the old one, for later launches") {
    const HostStream stream;
    const ScopedLatch latch;
    std::vector<int> seen;
    const auto make = [&](int number) {
        return captured(stream, [&] {
            stream.enqueue([&seen, number] { seen.push_back(number); });
            stream.enqueue([&seen, number] { seen.push_back(number + 1); });
        });
    };
    const OwnedExecutable executable = instantiated(make(10));
    hold(stream, latch);
    launch(executable, stream);
    CHECK(Host::update(executable.get(), make(20).get()));
    launch(executable, stream);
    latch.open();
    stream.synchronize();
    CHECK(seen == std::vector<int>{10, 11, 20, 21});
}

TEST_CASE("a graph of another shape is refused, and nothing changes") {
    const HostStream stream;
    const HostStream side;
    HostEvent event;
    int number = 0;
    const auto one = [&] { stream.enqueue([&number] { number = 1; }); };
    const OwnedExecutable executable = instantiated(captured(stream, [&] {
        one();
        one();
    }));
    const OwnedGraph more = captured(stream, [&] {
        one();
        one();
        one();
    });
    const OwnedGraph kinds = captured(stream, [&] {
        one();
        Host::fill_bytes(&number, 2, sizeof(number), stream.native());
    });
    const OwnedGraph edges = captured(stream, [&] {
        event.record(stream);
        one();
        side.wait(event);
        side.enqueue([&number] { number = 3; });
        event.record(side);
        stream.wait(event);
    });
    CHECK(Host::node_count(edges.get()) == 2);
    CHECK(Host::edge_count(edges.get()) == 0);
    for (const OwnedGraph* graph : {&more, &kinds, &edges})
        CHECK_FALSE(Host::update(executable.get(), graph->get()));
    launch(executable, stream);
    stream.synchronize();
    CHECK(number == 1);
}

TEST_CASE("graphs are built by hand") {
    const OwnedGraph graph(Host::create_graph());
    const HostStream stream;
    int from = 5;
    int to = 0;
    int bytes = 0;
    int calls = 0;
    std::vector<char> seen;
    host::Node* const start = Host::add_empty(graph.get(), nullptr, 0);
    host::Node* const copy =
        Host::add_copy(graph.get(), &start, 1, &to, &from, sizeof(int), CopyKind::host_to_device);
    host::Node* const fill = Host::add_fill(graph.get(), &start, 1, &bytes, 1, sizeof(int));
    host::Node* const both[] = {fill, copy, fill}; // one twice
    host::Node* const call = Host::add_host(
        graph.get(), both, 3, [](void* data) { ++*static_cast<int*>(data); }, &calls);
    host::Node* const task = add(graph, [&seen] { seen.push_back('t'); }, {call});
    CHECK(Host::node_count(graph.get()) == 5);
    CHECK(Host::edge_count(graph.get()) == 5);
    Host::add_dependency(graph.get(), start, task);
    Host::add_dependency(graph.get(), start, task);
    CHECK(Host::edge_count(graph.get()) == 6);
    CHECK_THROWS_AS(Host::add_dependency(graph.get(), task, start), Error);
    CHECK_THROWS_AS(Host::add_dependency(graph.get(), task, task), Error);

    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.synchronize();
    CHECK(to == 5);
    CHECK(bytes == 0x01010101);
    CHECK(calls == 1);
    CHECK(seen == std::vector<char>{'t'});

    SUBCASE("and their parameters set anew, for later launches") {
        const ScopedLatch latch;
        int other = 6;
        int others = 0;
        hold(stream, latch);
        launch(executable, stream);
        Host::set_copy(executable.get(), copy, &to, &other, sizeof(int), CopyKind::host_to_device);
        Host::set_fill(executable.get(), fill, &bytes, 2, 1);
        Host::set_host(
            executable.get(), call, [](void* data) { *static_cast<int*>(data) -= 1; }, &others);
        Host::set_task(executable.get(), task, host::Task{[&seen] { seen.push_back('T'); }});
        launch(executable, stream);
        latch.open();
        stream.synchronize();
        CHECK(to == 6);
        CHECK(bytes == 0x01010102);
        CHECK(calls == 2); // the launch before was not touched
        CHECK(others == -1);
        CHECK(seen == std::vector<char>{'t', 't', 'T'});
    }
    SUBCASE("but nodes of another kind or graph are refused") {
        const OwnedGraph foreign(Host::create_graph());
        host::Node* const stranger = Host::add_fill(foreign.get(), nullptr, 0, &bytes, 0, 1);
        const auto set = [&](host::Node* node) { Host::set_fill(executable.get(), node, &bytes, 0, 1); };
        CHECK(contains(text_of([&] { set(copy); }), "of the kind copy, and fill was expected"));
        CHECK(contains(text_of([&] { set(stranger); }), "not one of the graph"));
        CHECK_THROWS_AS(set(nullptr), Error);
        CHECK_THROWS_AS(Host::add_empty(graph.get(), &stranger, 1), Error);
        CHECK_THROWS_AS(Host::add_host(graph.get(), nullptr, 0, nullptr, nullptr), Error);
        CHECK(Host::node_count(graph.get()) == 5);
    }
}

TEST_CASE("a child graph is copied in, and can be replaced by one of its shape") {
    const HostStream stream;
    int number = 0;
    const auto child_of = [&](int step) {
        OwnedGraph child(Host::create_graph());
        add(child, [&number, step] { number += step; });
        return child;
    };
    const OwnedGraph graph(Host::create_graph());
    host::Node* node = nullptr;
    {
        const OwnedGraph child = child_of(1);
        node = Host::add_child(graph.get(), nullptr, 0, child.get());
        add(child, [] {}); // too late to matter
    }
    CHECK(Host::node_count(graph.get()) == 2);
    CHECK(Host::edge_count(graph.get()) == 0);
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    Host::set_child(executable.get(), node, child_of(10).get());
    launch(executable, stream);
    stream.synchronize();
    CHECK(number == 11);

    const OwnedGraph larger = child_of(100);
    add(larger, [] {});
    CHECK_THROWS_AS(Host::set_child(executable.get(), node, larger.get()), Error);
    const OwnedGraph other(Host::create_graph());
    Host::add_child(other.get(), nullptr, 0, larger.get());
    CHECK_FALSE(Host::update(executable.get(), other.get()));
}

TEST_CASE("a picture names the nodes, the edges and what is inside") {
    const OwnedGraph graph(Host::create_graph());
    host::Node* const first = add(graph, [] {});
    Host::add_child(graph.get(), &first, 1, graph.get()); // a graph may even hold a copy of itself
    const std::string path = "host_graph_test.dot";
    Host::write_dot(graph.get(), path.c_str());
    const std::string text = text_in(path);
    std::remove(path.c_str());
    CHECK(contains(text, "digraph"));
    CHECK(contains(text, "n0 [label=\"0: task\"]"));
    CHECK(contains(text, "n0 -> n1;"));
    CHECK(contains(text, "subgraph cluster_n1_0"));
    CHECK(contains(text, "n1_0_0 [label=\"0: task\"]"));
    CHECK(contains(text_of([&] { Host::write_dot(graph.get(), "no/such/folder/graph.dot"); }), "graph.dot"));
}

TEST_CASE("a signature tells graphs apart by their nodes, their order and their parameters") {
    const HostStream stream;
    int a = 0;
    int b = 0;
    const auto signature = [&](int* to, int value, bool twice) {
        const OwnedGraph graph = captured(stream, [&] {
            Host::fill_bytes(to, value, sizeof(int), stream.native());
            stream.enqueue([] {});
            if (twice)
                stream.enqueue([] {});
        });
        return Host::signature(graph.get());
    };
    const std::uint64_t one = signature(&a, 1, false);
    CHECK(signature(&a, 1, false) == one);
    CHECK(signature(&b, 1, false) != one);
    CHECK(signature(&a, 2, false) != one);
    CHECK(signature(&a, 1, true) != one);
}

TEST_CASE("device memory that a graph names is known, and known to be gone") {
    const HostStream stream;
    auto* const memory = static_cast<char*>(Host::allocate_device(64));
    int local = 0;
    const OwnedGraph graph = captured(stream, [&] {
        Host::copy(&local, memory + 4, sizeof(int), CopyKind::device_to_host, stream.native());
    });
    const std::vector<const void*> pointers = Host::device_pointers(graph.get());
    CHECK(pointers == std::vector<const void*>{memory + 4});
    CHECK(Host::is_device_memory(memory + 63));
    CHECK_FALSE(Host::is_device_memory(memory + 64));
    CHECK_FALSE(Host::is_device_memory(&local));
    Host::free_device(memory);
    CHECK_FALSE(Host::is_device_memory(memory + 4));
}

} // namespace backend_host_graph
