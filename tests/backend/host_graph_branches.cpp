// Branches of a host graph that do not depend on each other run at the same time.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sluice/backend/detail/host/branches.hpp>

#include "backend/host_graph.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/latch.hpp"
#include "support/on_stream.hpp"

namespace backend_host_graph_branches {

using namespace sluice;
using namespace sluice::test;

namespace {

template <class F>
host::Node* add(const OwnedGraph& graph, F&& task, const std::vector<host::Node*>& after = {}) {
    return Host::add_task(graph.get(), after.data(), after.size(), host::Task{std::forward<F>(task)});
}

// Two nodes of which each needs the other one to run meanwhile.
struct Meeting {
    ScopedLatch left;
    ScopedLatch right;

    auto at_left() {
        return [mine = left.handle(), other = right.handle()] {
            mine.open();
            other.pass();
        };
    }
    auto at_right() {
        return [mine = right.handle(), other = left.handle()] {
            mine.open();
            other.pass();
        };
    }
    bool took_place() const { return !left.timed_out() && !right.timed_out(); }
};

} // namespace

TEST_CASE("nodes that come after all of a branch go on with it, and no further thread is taken") {
    const auto branches = [](const std::vector<std::vector<std::size_t>>& after) {
        detail::List<detail::List<std::size_t>> nodes;
        for (const auto& before : after) {
            nodes.emplace_back();
            for (const std::size_t node : before)
                nodes.back().push_back(node);
        }
        return host::Branches(std::move(nodes)).count();
    };
    CHECK(branches({{}}) == 1);
    CHECK(branches({{}, {0}, {1}}) == 1);
    CHECK(branches({{}, {}, {}}) == 3);
    CHECK(branches({{}, {0}, {0}, {1, 2}}) == 2);
    CHECK(branches({{}, {}, {1}, {1}}) == 3);
    // 3 and 4 come after 2, which is on the branch of 0; that of 1 has ended by then.
    CHECK(branches({{}, {}, {0, 1}, {2}, {2}}) == 2);
    CHECK(branches({{}, {}, {0, 1}, {2}, {2}, {2}}) == 3);
}

TEST_CASE("two branches run at the same time, between what comes before and after both") {
    const HostStream stream;
    Meeting meeting;
    std::vector<int> seen;
    const OwnedGraph graph(Host::create_graph());
    host::Node* const before = add(graph, [&seen] { seen.push_back(1); });
    host::Node* const left = add(graph, meeting.at_left(), {before});
    host::Node* const right = add(graph, meeting.at_right(), {before});
    add(graph, [&seen] { seen.push_back(2); }, {left, right});
    const OwnedExecutable executable = instantiated(graph);
    for (int i = 0; i < 3; ++i)
        launch(executable, stream);
    stream.sync();
    CHECK(meeting.took_place());
    CHECK(seen == std::vector<int>{1, 2, 1, 2, 1, 2});
}

TEST_CASE("captured forks run at the same time, also those that begin the graph") {
    const HostStream stream;
    const HostStream side;
    HostEvent forked;
    HostEvent joined;
    Meeting meeting;
    const OwnedExecutable executable = instantiated(captured(stream, [&] {
        forked.record(stream);
        side.wait(forked);
        stream.enqueue(meeting.at_left());
        side.enqueue(meeting.at_right());
        joined.record(side);
        stream.wait(joined);
    }));
    launch(executable, stream);
    stream.sync();
    CHECK(meeting.took_place());
}

TEST_CASE("nodes beyond as many as there are threads are shared out evenly") {
    const HostStream stream;
    const OwnedGraph graph(Host::create_graph());
    constexpr std::size_t threads = host::Branches::limit;
    std::atomic<std::size_t> met{0};
    std::atomic<bool> in_vain{false};
    // Each lap is over when as many nodes as there are threads have come to it.
    const auto meet = [&](std::size_t lap) {
        const auto end = std::chrono::steady_clock::now() + patience;
        for (++met; met < lap * threads && !in_vain; std::this_thread::yield())
            in_vain = in_vain || std::chrono::steady_clock::now() > end;
    };
    for (std::size_t lap = 1; lap <= 3; ++lap) {
        for (std::size_t i = 0; i < threads; ++i)
            add(graph, [&meet, lap] { meet(lap); });
    }
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.sync();
    CHECK_FALSE(in_vain);
    CHECK(met == 3 * threads);
}

TEST_CASE("branches within children and bodies run at the same time") {
    const HostStream stream;
    Meeting in_child;
    Meeting in_body;
    const OwnedGraph child(Host::create_graph());
    add(child, in_child.at_left());
    add(child, in_child.at_right());
    const OwnedGraph graph(Host::create_graph());
    Host::add_child(graph.get(), nullptr, 0, child.get());
    const OwnedExecutable with_child = instantiated(graph);
    launch(with_child, stream);
    stream.sync();
    CHECK(in_child.took_place());

    unsigned rounds = 3;
    int met = 0;
    const OwnedExecutable with_body = instantiated(captured(stream, [&] {
        host::Graph* body = nullptr;
        const auto condition = Host::create_condition(Host::capturing_graph(stream.get()), &rounds);
        Host::capture_condition(stream.get(), condition, ConditionKind::while_nonzero, 1, &body);
        const auto task = [&](auto callable, const std::vector<host::Node*>& after = {}) {
            return Host::add_task(body, after.data(), after.size(), host::Task{callable});
        };
        host::Node* const left = task(in_body.at_left());
        host::Node* const right = task(in_body.at_right());
        task(
            [&] {
                --rounds;
                ++met;
            },
            {left, right});
    }));
    launch(with_body, stream);
    stream.sync();
    CHECK(in_body.took_place());
    CHECK(met == 3);
}

TEST_CASE("a graph without branches runs on its stream's own thread") {
    const HostStream stream;
    std::thread::id thread;
    stream.enqueue([&thread] { thread = std::this_thread::get_id(); });
    int elsewhere = 0;
    const OwnedExecutable executable = instantiated(captured(stream, [&] {
        for (int i = 0; i < 20; ++i)
            stream.enqueue([&] { elsewhere += std::this_thread::get_id() == thread ? 0 : 1; });
    }));
    launch(executable, stream);
    stream.sync();
    CHECK(elsewhere == 0);
}

TEST_CASE("each node runs once, after all that it depends on, in graphs of any shape") {
    const HostStream stream;
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
        CAPTURE(round);
        const std::size_t count = 1 + random() % 120;
        const int edges = round % 4; // 0: all are independent, more than there are threads
        std::vector<std::vector<std::size_t>> after(count);
        std::vector<int> runs(count, 0);
        std::atomic<int> early{0};
        const OwnedGraph graph(Host::create_graph());
        std::vector<host::Node*> nodes;
        for (std::size_t node = 0; node < count; ++node) {
            std::vector<host::Node*> before;
            for (int edge = 0; edge < edges && node > 0; ++edge) {
                const std::size_t near = std::min<std::size_t>(node, round % 2 == 0 ? 6 : node);
                after[node].push_back(node - 1 - random() % near);
                before.push_back(nodes[after[node].back()]);
            }
            nodes.push_back(add(
                graph,
                [&, node] {
                    for (const std::size_t other : after[node]) // a race, if the order were not kept
                        early += runs[other] == runs[node] + 1 ? 0 : 1;
                    ++runs[node];
                },
                before));
        }
        const OwnedExecutable executable = instantiated(graph);
        for (int i = 0; i < 10; ++i)
            launch(executable, stream);
        stream.sync();
        CHECK(early == 0);
        CHECK(runs == std::vector<int>(count, 10));
    }
}

TEST_CASE("launches of a graph with branches follow each other, on any stream") {
    const HostStream first;
    const HostStream second;
    std::atomic<int> inside{0};
    std::atomic<int> together{0};
    int ends = 0;
    const OwnedGraph graph(Host::create_graph());
    const auto enter = [&] { inside += 1; };
    host::Node* const left = add(graph, enter);
    host::Node* const middle = add(graph, enter);
    host::Node* const right = add(graph, enter);
    add(graph,
        [&] {
            together += inside == 3 ? 0 : 1;
            inside = 0;
            ++ends;
        },
        {left, middle, right});
    const OwnedExecutable executable = instantiated(graph);
    for (int i = 0; i < 300; ++i) {
        launch(executable, first);
        launch(executable, second);
    }
    first.sync();
    second.sync();
    CHECK(together == 0);
    CHECK(ends == 600);
}

TEST_CASE("what a node throws keeps what depends on it from running, and nothing else") {
    const HostStream stream;
    bool fails = true;
    std::array<int, 5> ran{};
    const OwnedGraph graph(Host::create_graph());
    host::Node* const start = add(graph, [&ran] { ++ran[0]; });
    host::Node* const bad = add(graph,
                                [&] {
                                    if (fails)
                                        throw std::runtime_error("the lamp went out");
                                    ++ran[1];
                                },
                                {start});
    host::Node* const behind = add(graph, [&ran] { ++ran[2]; }, {bad});
    host::Node* const good = add(graph, [&ran] { ++ran[3]; }, {start});
    add(graph, [&ran] { ++ran[4]; }, {behind, good});
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    launch(executable, stream); // a failed stream runs nothing of it
    CHECK(text_of([&] { stream.sync(); }) == "work on a host stream failed: the lamp went out");
    CHECK(ran == std::array<int, 5>{1, 0, 0, 1, 0});
    fails = false;
    Host::clear_failure(stream.get());
    launch(executable, stream);
    stream.sync();
    CHECK(ran == std::array<int, 5>{2, 1, 1, 2, 1});
}

TEST_CASE("what threw in an earlier run keeps nothing from running in a later one that fails elsewhere") {
    // Of two that are thrown one is kept and the other destroyed, once it is known that something has failed.
    struct Thrown {
        std::shared_ptr<void> goes;
    };
    const HostStream stream;
    const ScopedLatch one_is_gone;
    bool first_run = true;
    int ran = 0;
    const OwnedGraph graph(Host::create_graph());
    const auto throwing = [&, gone = one_is_gone.handle()] {
        if (!first_run)
            throw Thrown{std::shared_ptr<void>(nullptr, [gone](void*) { gone.open(); })};
    };
    add(graph, throwing);
    add(graph, throwing);
    host::Node* const bad = add(graph, [&, gone = one_is_gone.handle()] {
        if (first_run)
            throw std::runtime_error("the lamp went out");
        gone.pass();
    });
    add(graph, [&ran] { ++ran; }, {bad});
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    CHECK(contains(text_of([&] { stream.sync(); }), "the lamp went out"));
    Host::clear_failure(stream.get());
    first_run = false;
    launch(executable, stream);
    CHECK(contains(text_of([&] { stream.sync(); }), "an exception of an unknown type"));
    CHECK_FALSE(one_is_gone.timed_out());
    CHECK(ran == 1);
}

TEST_CASE("where several branches throw, one of their exceptions is reported") {
    const HostStream stream;
    const OwnedGraph graph(Host::create_graph());
    for (int i = 0; i < 8; ++i)
        add(graph, [] { throw std::runtime_error("all went out"); });
    const OwnedExecutable executable = instantiated(graph);
    for (int i = 0; i < 50; ++i) {
        launch(executable, stream);
        CHECK(contains(text_of([&] { stream.sync(); }), "all went out"));
        Host::clear_failure(stream.get());
    }
}

TEST_CASE("a node that waits for the stream that it is launched on is told so, on any branch") {
    const HostStream stream;
    std::array<std::string, 2> texts;
    const OwnedGraph graph(Host::create_graph());
    for (std::string& text : texts)
        add(graph, [&] { text = text_of([&] { stream.sync(); }); });
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.sync();
    for (const std::string& text : texts)
        CHECK(contains(text, "a task cannot wait for the stream that runs it"));
}

TEST_CASE("replaying branches allocates nothing and makes no threads") {
    const HostStream stream;
    std::array<std::atomic<int>, 4> counts{};
    const OwnedGraph graph(Host::create_graph());
    std::vector<host::Node*> former;
    for (int layer = 0; layer < 5; ++layer) {
        std::vector<host::Node*> nodes;
        for (std::atomic<int>& count : counts)
            nodes.push_back(add(
                graph, [&count] { ++count; }, former));
        former = nodes;
    }
    const OwnedExecutable executable = instantiated(graph);
    const auto replay = [&] {
        for (int i = 0; i < 200; ++i)
            launch(executable, stream);
        stream.sync();
    };
    replay();
    const HeapCount heap;
    replay();
    CHECK(heap.allocations() == 0);
    for (const std::atomic<int>& count : counts)
        CHECK(count == 2000);
}

TEST_CASE("a changed node keeps its place among the branches") {
    const HostStream stream;
    Meeting meeting;
    const OwnedGraph graph(Host::create_graph());
    host::Node* const left = add(graph, [] {});
    add(graph, meeting.at_right());
    const OwnedExecutable executable = instantiated(graph);
    Host::set_task(executable.get(), left, host::Task{meeting.at_left()});
    launch(executable, stream);
    stream.sync();
    CHECK(meeting.took_place());
}

} // namespace backend_host_graph_branches
