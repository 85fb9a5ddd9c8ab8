// Capturing host streams: forks and joins, and what may go on beside a capture.
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/host_capture_case.hpp"
#include "backend/host_graph.hpp"
#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_host_capture {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a fork that is joined becomes edges") {
    const HostStream stream;
    const HostStream side;
    HostEvent forked;
    HostEvent joined;
    std::array<std::atomic<int>, 6> turn{}; // when each node ran; 2 and 3 beside 4
    std::atomic<int> turns{0};
    const auto note = [&](std::size_t node) { return [&, node] { turn[node] = ++turns; }; };
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue(note(1));
        forked.record(stream);
        side.wait(forked);
        CHECK(Host::is_capturing(side.get()));
        side.enqueue(note(2));
        side.enqueue(note(3));
        stream.enqueue(note(4));
        joined.record(side);
        stream.wait(joined);
        stream.enqueue(note(5));
    });
    CHECK_FALSE(Host::is_capturing(side.get()));
    CHECK(Host::node_count(graph.get()) == 5);
    CHECK(Host::edge_count(graph.get()) == 5); // 1-2, 2-3, 1-4, 3-5, 4-5
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.sync();
    CHECK(turns == 5);
    CHECK(turn[1] == 1);
    CHECK(turn[2] < turn[3]);
    CHECK(turn[5] == 5);

    side.enqueue([&] { turns = 0; }); // runs at once again
    side.sync();
    CHECK(turns == 0);
}

TEST_CASE("a fork without work of its own is no fork, and joins may go through others") {
    const HostStream stream;
    const HostStream second;
    const HostStream third;
    HostEvent event;
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue([] {});
        event.record(stream);
        second.wait(event);
        third.wait(event);
        second.enqueue([] {});
        event.record(second);
        third.wait(event);
        third.enqueue([] {}); // behind both
        event.record(third);
        stream.wait(event);
        stream.wait(event);
        event.record(stream);
        second.wait(event); // forked again, with nothing behind
    });
    CHECK(Host::node_count(graph.get()) == 3);
}

TEST_CASE("a fork may begin before anything else") {
    const HostStream stream;
    const HostStream side;
    HostEvent event;
    const OwnedGraph graph = captured(stream, [&] {
        event.record(stream);
        side.wait(event);
        side.enqueue([] {});
        event.record(side);
        stream.wait(event);
    });
    CHECK(Host::node_count(graph.get()) == 1);
    CHECK(Host::edge_count(graph.get()) == 0);
}

TEST_CASE("a fork that is not joined is refused") {
    const HostStream stream;
    HostEvent event;
    std::optional<HostStream> side{std::in_place};
    const auto fork = [&] {
        stream.enqueue([] {});
        event.record(stream);
        side->wait(event);
        side->enqueue([] {});
    };
    CHECK(contains(reason_of(stream, fork), "a fork that was not joined"));
    CHECK_FALSE(Host::is_capturing(side->get()));
    CHECK(contains(reason_of(stream,
                             [&] {
                                 fork();
                                 event.record(*side);
                                 stream.wait(event);
                                 side->enqueue([] {}); // behind the join
                             }),
                   "a fork that was not joined"));
    CHECK(contains(reason_of(stream,
                             [&] {
                                 fork();
                                 side.reset(); // its work is still in the graph
                             }),
                   "a fork that was not joined"));
}

TEST_CASE("a stream may go within the capture that it joined") {
    const HostStream stream;
    const OwnedGraph graph = captured(stream, [&] {
        const HostStream side;
        HostEvent event;
        event.record(stream);
        side.wait(event);
        side.enqueue([] {});
        event.record(side);
        stream.wait(event);
    });
    CHECK(Host::node_count(graph.get()) == 1);
}

TEST_CASE("a stream that is destroyed while it is being captured ends the capture") {
    const HostStream side;
    HostEvent event;
    {
        const HostStream stream;
        Host::begin_capture(stream.get(), CaptureMode::this_thread);
        event.record(stream);
        side.wait(event);
        CHECK(Host::is_capturing(side.get()));
    }
    CHECK_FALSE(Host::is_capturing(side.get()));
    Host::free_device(Host::allocate_device(8)); // nothing forbids it any longer
}

TEST_CASE("other threads may do as they like, unless the capture is global") {
    const HostStream stream;
    const auto elsewhere = [](auto&& call) { std::thread(call).join(); };
    const auto work = [] {
        const HostStream other;
        HostEvent event;
        int ran = 0;
        void* const memory = Host::allocate_device(8);
        void* const pinned = Host::allocate_pinned(8);
        other.enqueue([&ran] { ++ran; });
        Host::fill_bytes(memory, 1, 8, other.get());
        event.record(other);
        event.sync();
        other.sync();
        CHECK(ran == 1);
        Host::free_pinned(pinned);
        Host::free_device(memory);
    };
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue([] {});
        elsewhere(work);
        stream.enqueue([] {});
    });
    CHECK(Host::node_count(graph.get()) == 2);

    check_invalidates(
        stream,
        [&] {
            std::string text;
            elsewhere([&] { text = text_of([] { (void)Host::allocate_device(8); }); });
            if (!text.empty())
                throw Error(text);
        },
        "allocate_device", CaptureMode::global);
}

TEST_CASE("threads capture beside each other") {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&wrong] {
            const HostStream stream;
            const HostStream side;
            HostEvent event;
            for (int round = 0; round < 100; ++round) {
                int number = 0;
                const OwnedGraph graph = captured(stream, [&] {
                    stream.enqueue([&number] { ++number; });
                    event.record(stream);
                    side.wait(event);
                    side.enqueue([&number] { number += 10; });
                    event.record(side);
                    stream.wait(event);
                });
                const OwnedExecutable executable = instantiated(graph);
                launch(executable, side);
                launch(executable, stream);
                side.sync();
                stream.sync();
                wrong += number != 22;
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("work for a stream that is not being captured simply runs") {
    const HostStream stream;
    const HostStream other;
    int ran = 0;
    const OwnedGraph graph = captured(stream, [&] {
        other.enqueue([&ran] { ++ran; });
        other.sync();
        CHECK(ran == 1);
    });
    CHECK(Host::node_count(graph.get()) == 0);
}

TEST_CASE("the guard's ledger is told what was captured and what ran") {
    const HostStream stream;
    const HostStream other;
    int number = 0;
    const detail::CaptureLedger former = detail::capture_ledger();
    detail::capture_ledger() = {.depth = 1};
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue([] {});
        Host::copy(&number, &number, 0, CopyKind::host_to_device, stream.get());
        Host::fill_bytes(&number, 0, sizeof(number), other.get());
        other.sync();
    });
    CHECK(detail::capture_ledger().issued == 2);
    CHECK(detail::capture_ledger().outside == 1);
    detail::capture_ledger() = former;
}

TEST_CASE("stream-ordered memory within a capture lives with the graph") {
    const HostStream stream;
    const Alive before = alive_now<Host>();
    unsigned char seen = 0;
    void* kept = nullptr;
    {
        OwnedGraph graph = captured(stream, [&] {
            void* const memory = Host::allocate_device(16, stream.get());
            Host::fill_bytes(memory, 7, 16, stream.get());
            Host::copy(&seen, memory, 1, CopyKind::device_to_host, stream.get());
            Host::free_device(memory, stream.get());
            kept = Host::allocate_device(4, stream.get()); // whose owner outlives the capture
        });
        Host::free_device(kept, stream.get());
        CHECK(alive_now<Host>().device_allocations == before.device_allocations);
        const OwnedExecutable executable = instantiated(graph);
        graph.reset();
        launch(executable, stream);
        stream.sync();
        CHECK(seen == 7);
        CHECK(Host::is_device_memory(kept));
    }
    CHECK_FALSE(Host::is_device_memory(kept));
}

TEST_CASE("stream-ordered memory of a capture that its owner has not freed outlives the graph, and a failed "
          "capture") {
    const HostStream stream;
    const Alive before = alive_now<Host>();
    const std::size_t bytes_before = Host::device_memory_in_use();
    const auto allocate = [&] {
        return static_cast<unsigned char*>(Host::allocate_device(16, stream.get()));
    };
    for (const bool ordered : {false, true}) {
        unsigned char *of_graph = nullptr, *of_failed = nullptr;
        {
            const OwnedGraph graph = captured(stream, [&] { of_graph = allocate(); });
        }
        (void)reason_of(stream, [&] {
            of_failed = allocate();
            CHECK_THROWS_AS(stream.sync(), Error); // which cannot be captured
        });
        for (unsigned char* const memory : {of_graph, of_failed}) {
            REQUIRE(Host::is_device_memory(memory));
            Host::fill_bytes(memory, 1, 16, stream.get());
            stream.sync();
            CHECK(memory[15] == 1);
            if (ordered)
                Host::free_device(memory, stream.get());
            else
                Host::free_device(memory);
            stream.sync();
            CHECK_FALSE(Host::is_device_memory(memory));
        }
    }
    CHECK(alive_now<Host>().device_allocations == before.device_allocations);
    CHECK(Host::device_memory_in_use() == bytes_before);
}

} // namespace backend_host_capture
