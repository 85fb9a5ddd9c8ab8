// Host graphs: their nodes, captured or added by hand, and what can be asked about them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "backend/host_graph.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
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

TEST_CASE("copies and fills are captured with their memory") {
    const HostStream stream;
    std::array<unsigned char, 4> from{1, 2, 3, 4};
    std::array<unsigned char, 4> to{};
    const OwnedGraph graph = captured(stream, [&] {
        Host::fill_bytes(to.data(), 7, 4, stream.get());
        Host::copy(to.data(), from.data(), 2, CopyKind::host_to_device, stream.get());
    });
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.sync();
    CHECK(to == std::array<unsigned char, 4>{1, 2, 7, 7});
    from[0] = 9;
    launch(executable, stream);
    stream.sync();
    CHECK(to[0] == 9);
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
    stream.sync();
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
        stream.sync();
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
    stream.sync();
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
    if (std::ifstream("/dev/full")) // takes no byte, which shows when the file is closed
        CHECK(contains(text_of([&] { Host::write_dot(graph.get(), "/dev/full"); }),
                       "cannot write '/dev/full': No space left on device"));
}

TEST_CASE("a signature tells graphs apart by their nodes, their order and their parameters") {
    const HostStream stream;
    int a = 0;
    int b = 0;
    const auto signature = [&](int* to, int value, bool twice) {
        const OwnedGraph graph = captured(stream, [&] {
            Host::fill_bytes(to, value, sizeof(int), stream.get());
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

TEST_CASE("a signature tells callables apart by every word that they have captured") {
    const HostStream stream;
    const auto signature = [&](const auto& words) {
        return Host::signature(captured(stream, [&] { stream.enqueue([words] { (void)words; }); }).get());
    };
    const std::array<std::uint64_t, 3> words{~std::uint64_t{0}, 0, 1};
    const std::array<std::uint32_t, 3> halves{~std::uint32_t{0}, 0, 1};
    CHECK(signature(words) == signature(words));
    CHECK(signature(halves) == signature(halves));
    for (std::size_t i = 0; i < 3; ++i) {
        for (const std::uint32_t bit : {1u, 2u, 1u << 31}) {
            CAPTURE(i);
            CAPTURE(bit);
            auto others = words;
            others[i] ^= bit;
            CHECK(signature(others) != signature(words));
            auto other_halves = halves;
            other_halves[i] ^= bit;
            CHECK(signature(other_halves) != signature(halves));
        }
    }
}

TEST_CASE("a signature takes addresses of memory of one's own for their place in it") {
    const HostStream stream;
    int memory[3] = {};
    const auto signature = [&](int first, int second, const std::vector<const void*>& own) {
        const OwnedGraph graph = captured(stream, [&] {
            stream.enqueue([a = &memory[first], b = &memory[second]] { *a += *b; });
            Host::fill_bytes(&memory[first], 1, sizeof(int), stream.get());
        });
        return Host::signature(graph.get(), own);
    };
    CHECK(signature(0, 1, {&memory[0], &memory[1]}) == signature(2, 1, {&memory[2], &memory[1]}));
    CHECK(signature(0, 1, {&memory[0], &memory[1]}) == signature(0, 2, {&memory[0], &memory[2]}));
    CHECK(signature(0, 1, {&memory[0], &memory[1]}) != signature(1, 0, {&memory[0], &memory[1]}));
    CHECK(signature(0, 1, {&memory[0]}) != signature(0, 2, {&memory[0]}));
}

TEST_CASE("a signature takes addresses in memory that a capture allocated and freed for their place in it") {
    const HostStream stream;
    std::vector<void*> left; // not freed in its capture
    const auto graph_of = [&](std::size_t written, std::size_t offset, bool frees) {
        return captured(stream, [&] {
            char* memory[2] = {};
            for (char*& block : memory)
                block = static_cast<char*>(Host::allocate_device(16, stream.get()));
            stream.enqueue([to = memory[written] + offset] { *to = 1; });
            Host::fill_bytes(memory[written] + offset, 1, 2, stream.get());
            for (char* const block : memory) {
                if (frees || block != memory[written])
                    Host::free_device(block, stream.get());
                else
                    left.push_back(block);
            }
        });
    };
    // Graphs that live keep their memory, so that all addresses differ.
    const OwnedGraph first = graph_of(0, 3, true), same = graph_of(0, 3, true), block = graph_of(1, 3, true),
                     place = graph_of(0, 4, true), kept = graph_of(0, 3, false),
                     kept_too = graph_of(0, 3, false);
    const std::uint64_t signature = Host::signature(first.get());
    CHECK(Host::signature(same.get()) == signature);
    CHECK(Host::signature(block.get()) != signature);
    CHECK(Host::signature(place.get()) != signature);
    CHECK(Host::signature(kept.get()) != signature);
    CHECK(Host::signature(kept.get()) != Host::signature(kept_too.get())); // whose owner knows the address
    for (void* const memory : left)
        Host::free_device(memory, stream.get());
}

TEST_CASE("device memory that a graph names is known, and known to be gone") {
    const HostStream stream;
    auto* const memory = static_cast<char*>(Host::allocate_device(64));
    int local = 0;
    const OwnedGraph graph = captured(
        stream, [&] { Host::copy(&local, memory + 4, sizeof(int), CopyKind::device_to_host, stream.get()); });
    const std::vector<const void*> pointers = Host::device_pointers(graph.get());
    CHECK(pointers == std::vector<const void*>{memory + 4});
    const OwnedGraph others = captured(stream, [&] {
        Host::copy(memory + 8, &local, sizeof(int), CopyKind::host_to_device, stream.get());
        Host::copy(memory + 16, memory + 24, sizeof(int), CopyKind::device_to_device, stream.get());
        Host::fill_bytes(memory + 32, 0, 4, stream.get());
    });
    CHECK(Host::device_pointers(others.get()) ==
          std::vector<const void*>{memory + 8, memory + 16, memory + 24, memory + 32});
    CHECK(Host::is_device_memory(memory + 63));
    CHECK_FALSE(Host::is_device_memory(memory + 64));
    CHECK_FALSE(Host::is_device_memory(&local));
    Host::free_device(memory);
    CHECK_FALSE(Host::is_device_memory(memory + 4));
}

} // namespace backend_host_graph
