// Replaying and updating host graphs, and what may go on meanwhile.
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backend/host_graph.hpp"
#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/on_stream.hpp"

namespace backend_host_graph_replay {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("captured work does not run, and then runs as often as it is launched") {
    const HostStream stream;
    int number = 1;
    const OwnedGraph graph = captured(stream, [&] {
        CHECK(Host::is_capturing(stream.get()));
        stream.enqueue([&number] { number *= 3; });
        stream.enqueue([&number] { number += 1; });
    });
    CHECK_FALSE(Host::is_capturing(stream.get()));
    stream.sync();
    CHECK(number == 1);
    CHECK(Host::node_count(graph.get()) == 2);
    CHECK(Host::edge_count(graph.get()) == 1);

    const OwnedExecutable executable = instantiated(graph);
    Host::upload(executable.get(), stream.get());
    for (int i = 0; i < 5; ++i)
        launch(executable, stream);
    stream.sync();
    CHECK(number == 364); // 1, 4, 13, 40, 121, 364
    std::vector<int> seen;
    seen.reserve(1000);
    for (int i = 0; i < 1000; ++i) { // replays keep their place among other work
        stream.enqueue([&number, i] { number = i; });
        launch(executable, stream);
        stream.enqueue([&] { seen.push_back(number); });
    }
    stream.sync();
    REQUIRE(seen.size() == 1000);
    for (int i = 0; i < 1000; ++i)
        CHECK(seen[static_cast<std::size_t>(i)] == 3 * i + 1);
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
    stream.sync();
    CHECK(*held == 2);
    CHECK(eventually([&] { return held.use_count() == 1; })); // and nothing is kept for ever
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("replaying allocates nothing") {
    const HostStream stream;
    std::array<double, 64> from{};
    std::array<double, 64> to{};
    double sum = 0;
    const OwnedGraph graph = captured(stream, [&] {
        for (int i = 0; i < 20; ++i) {
            Host::copy(to.data(), from.data(), sizeof(to), CopyKind::host_to_device, stream.get());
            stream.enqueue([&sum, big = from] { sum += big[3] + 1; });
        }
    });
    const OwnedExecutable executable = instantiated(graph);
    const auto replay = [&] {
        for (int i = 0; i < 100; ++i)
            launch(executable, stream);
        stream.sync();
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
    CHECK_FALSE(second.is_done()); // it was launched after the one that is held up
    latch.open();
    second.sync();
    CHECK(passed);

    for (int i = 0; i < 500; ++i) {
        launch(executable, first);
        launch(executable, second);
    }
    first.sync();
    second.sync();
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
                stream.sync();
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
    CHECK(text_of([&] { stream.sync(); }) == "work on a host stream failed: the lamp went out");
    CHECK(before == 1);
    CHECK(behind == 0);

    fails = false;
    launch(executable, other); // neither the executable nor other streams are failed
    other.sync();
    Host::clear_failure(stream.get());
    launch(executable, stream);
    stream.sync();
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
    stream.sync();
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
        Host::fill_bytes(&number, 2, sizeof(number), stream.get());
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
    stream.sync();
    CHECK(number == 1);
}

} // namespace backend_host_graph_replay
