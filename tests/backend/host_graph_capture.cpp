// Capturing host streams: forks and joins, what invalidates a capture, and what leaves it alone.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/host_graph.hpp"
#include "support/alive.hpp"
#include "support/error_text.hpp"
#include "support/on_stream.hpp"

namespace backend_host_graph_capture {

using namespace sluice;
using namespace sluice::test;

namespace {

// Captures `work()`, which must fail somewhere, and gives what the end says. Nothing is left behind.
template <class F>
std::string reason_of(const HostStream& stream, F&& work, CaptureMode mode = CaptureMode::this_thread) {
    const std::uint64_t graphs = Host::counts().graphs.alive;
    Host::begin_capture(stream.native(), mode);
    work();
    const std::string text = text_of([&] { (void)Host::end_capture(stream.native()); });
    CHECK_FALSE(Host::is_capturing(stream.native()));
    CHECK(Host::counts().graphs.alive == graphs);
    int ran = 0; // the stream is as good as before
    stream.enqueue([&ran] { ++ran; });
    stream.synchronize();
    CHECK(ran == 1);
    return text;
}

// That `call()` throws within a capture of `stream`, for `why`, which the end repeats and so does any later call.
template <class F>
void check_invalidates(const HostStream& stream, F&& call, const std::string& why,
                       CaptureMode mode = CaptureMode::this_thread) {
    const std::string text = reason_of(
        stream,
        [&] {
            stream.enqueue([] {});
            CHECK(contains(text_of(call), why));
            CHECK(contains(text_of([&] { stream.enqueue([] {}); }), why));
        },
        mode);
    CHECK(contains(text, why));
    CHECK(contains(text, "invalid"));
}

} // namespace

TEST_CASE("a fork that is joined becomes edges") {
    const HostStream stream;
    const HostStream side;
    HostEvent forked;
    HostEvent joined;
    std::vector<int> seen;
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue([&] { seen.push_back(1); });
        forked.record(stream);
        side.wait(forked);
        CHECK(Host::is_capturing(side.native()));
        side.enqueue([&] { seen.push_back(2); });
        side.enqueue([&] { seen.push_back(3); });
        stream.enqueue([&] { seen.push_back(4); });
        joined.record(side);
        stream.wait(joined);
        stream.enqueue([&] { seen.push_back(5); });
    });
    CHECK_FALSE(Host::is_capturing(side.native()));
    CHECK(Host::node_count(graph.get()) == 5);
    CHECK(Host::edge_count(graph.get()) == 5); // 1-2, 2-3, 1-4, 3-5, 4-5
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    stream.synchronize();
    CHECK(seen == std::vector<int>{1, 2, 3, 4, 5});

    side.enqueue([&] { seen.clear(); }); // runs at once again
    side.synchronize();
    CHECK(seen.empty());
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
    CHECK_FALSE(Host::is_capturing(side->native()));
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
        Host::begin_capture(stream.native(), CaptureMode::this_thread);
        event.record(stream);
        side.wait(event);
        CHECK(Host::is_capturing(side.native()));
    }
    CHECK_FALSE(Host::is_capturing(side.native()));
    Host::free_device(Host::allocate_device(8)); // nothing forbids it any longer
}

TEST_CASE("a capture that failed keeps nothing, though an event of it lives") {
    const HostStream stream;
    HostEvent event;
    const auto held = std::make_shared<int>(0);
    CHECK_FALSE(reason_of(stream, [&] {
                    stream.enqueue([held] { ++*held; });
                    event.record(stream);
                    CHECK_THROWS_AS(stream.synchronize(), Error);
                }).empty());
    CHECK(held.use_count() == 1);
}

TEST_CASE("waiting for a stream or event that is being captured is refused") {
    const HostStream stream;
    HostEvent event;
    check_invalidates(
        stream, [&] { stream.synchronize(); }, "synchronize");
    check_invalidates(
        stream, [&] { (void)stream.done(); }, "stream_done");
    const auto recorded = [&](auto&& call) {
        return [&, call] {
            event.record(stream);
            call();
        };
    };
    check_invalidates(stream, recorded([&] { event.synchronize(); }), "waiting for an event");
    check_invalidates(stream, recorded([&] { (void)event.done(); }), "whether an event is done");
}

TEST_CASE("an event that was captured is of no use outside, until it is recorded again") {
    const HostStream stream;
    HostEvent event{EventOptions{.timing = true}};
    HostEvent plain{EventOptions{.timing = true}};
    plain.record(stream);
    stream.synchronize();
    const OwnedGraph graph = captured(stream, [&] { event.record(stream); });
    CHECK_THROWS_AS(event.synchronize(), Error);
    CHECK_THROWS_AS((void)event.done(), Error);
    CHECK(contains(text_of([&] { stream.wait(event); }), "capture that is over"));
    CHECK(contains(text_of([&] { (void)elapsed_milliseconds(event, plain); }), "was captured"));
    const std::string text = reason_of(stream, [&] { CHECK_THROWS_AS(stream.wait(event), Error); });
    CHECK(contains(text, "another capture"));
    event.record(stream);
    event.synchronize();
    CHECK(event.done());
    stream.wait(event);
    CHECK(elapsed_milliseconds(plain, event) >= 0);
}

TEST_CASE("waiting within a capture for an event from outside is refused") {
    const HostStream stream;
    const HostStream other;
    HostEvent event;
    HostEvent never;
    event.record(other);
    check_invalidates(
        stream, [&] { stream.wait(event); }, "outside of the capture");
    // Where there is no record there is nothing to wait for.
    CHECK(Host::node_count(captured(stream, [&] { stream.wait(never); }).get()) == 0);
}

TEST_CASE("two captures do not meet") {
    const HostStream first;
    const HostStream second;
    HostEvent event;
    Host::begin_capture(first.native(), CaptureMode::this_thread);
    const std::string text = reason_of(second, [&] {
        event.record(first);
        CHECK_THROWS_AS(second.wait(event), Error);
    });
    CHECK(contains(text, "another capture"));
    CHECK(contains(text_of([&] { (void)Host::end_capture(first.native()); }), "another capture"));
}

TEST_CASE("allocating and freeing disturb a capture of the same thread") {
    const HostStream stream;
    const Alive before = alive_now<Host>();
    check_invalidates(
        stream, [] { (void)Host::allocate_device(8); }, "allocate_device");
    check_invalidates(
        stream, [] { (void)Host::allocate_pinned(8); }, "allocate_pinned");
    CHECK(alive_now<Host>() == before);
    for (const bool pinned : {false, true}) {
        void* const memory = pinned ? Host::allocate_pinned(8) : Host::allocate_device(8);
        CHECK(contains(
            reason_of(stream, [&] { pinned ? Host::free_pinned(memory) : Host::free_device(memory); }),
            "freed"));
    }
    void* const ordered = Host::allocate_device(8, stream.native());
    CHECK(contains(reason_of(stream, [&] { Host::free_device(ordered, stream.native()); }), "freed"));
    CHECK(alive_now<Host>() == before); // freed it was

    void* memory = nullptr;
    const OwnedGraph graph = captured(
        stream, [&] { memory = Host::allocate_device(8); }, CaptureMode::relaxed);
    Host::free_device(memory);
}

TEST_CASE("other threads may do as they like, unless the capture is everybody's") {
    const HostStream stream;
    const auto elsewhere = [](auto&& call) { std::thread(call).join(); };
    const auto work = [] {
        const HostStream other;
        HostEvent event;
        int ran = 0;
        void* const memory = Host::allocate_device(8);
        void* const pinned = Host::allocate_pinned(8);
        other.enqueue([&ran] { ++ran; });
        Host::fill_bytes(memory, 1, 8, other.native());
        event.record(other);
        event.synchronize();
        other.synchronize();
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
                side.synchronize();
                stream.synchronize();
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
        other.synchronize();
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
        Host::copy(&number, &number, 0, CopyKind::host_to_device, stream.native());
        Host::fill_bytes(&number, 0, sizeof(number), other.native());
        other.synchronize();
    });
    CHECK(detail::capture_ledger().issued == 2);
    CHECK(detail::capture_ledger().outside == 1);
    detail::capture_ledger() = former;
}

TEST_CASE("a launch cannot be captured") {
    const HostStream stream;
    const OwnedExecutable executable = instantiated(captured(stream, [] {}));
    check_invalidates(
        stream, [&] { launch(executable, stream); }, "launch");
    check_invalidates(
        stream, [&] { Host::upload(executable.get(), stream.native()); }, "upload");
}

TEST_CASE("captures begin and end in pairs, on one stream and one thread") {
    const HostStream stream;
    const HostStream side;
    HostEvent event;
    CHECK(contains(text_of([&] { (void)Host::end_capture(stream.native()); }), "not being captured"));
    CHECK_THROWS_AS((void)Host::capturing_graph(stream.native()), Error);

    const OwnedGraph twice = captured(stream, [&] {
        CHECK_THROWS_AS(Host::begin_capture(stream.native(), CaptureMode::this_thread), Error);
        stream.enqueue([] {}); // that did the capture no harm
    });
    CHECK(Host::node_count(twice.get()) == 1);
    CHECK(contains(reason_of(stream,
                             [&] {
                                 event.record(stream);
                                 side.wait(event);
                                 CHECK_THROWS_AS((void)Host::end_capture(side.native()), Error);
                             }),
                   "the stream joined the capture"));
    CHECK(contains(reason_of(stream,
                             [&] {
                                 std::thread([&] {
                                     CHECK_THROWS_AS((void)Host::end_capture(stream.native()), Error);
                                 }).join();
                             }),
                   "the thread that began"));
}

TEST_CASE("stream-ordered memory within a capture lives with the graph") {
    const HostStream stream;
    const Alive before = alive_now<Host>();
    unsigned char seen = 0;
    void* kept = nullptr;
    {
        OwnedGraph graph = captured(stream, [&] {
            void* const memory = Host::allocate_device(16, stream.native());
            Host::fill_bytes(memory, 7, 16, stream.native());
            Host::copy(&seen, memory, 1, CopyKind::device_to_host, stream.native());
            Host::free_device(memory, stream.native());
            kept = Host::allocate_device(4, stream.native()); // whose owner outlives the capture
        });
        Host::free_device(kept, stream.native());
        CHECK(alive_now<Host>().device_allocations == before.device_allocations);
        const OwnedExecutable executable = instantiated(graph);
        graph.reset();
        launch(executable, stream);
        stream.synchronize();
        CHECK(seen == 7);
        CHECK(Host::is_device_memory(kept));
    }
    CHECK_FALSE(Host::is_device_memory(kept));
}

namespace {

// Captures a conditional node over `word`, with a body for each of `bodies`.
template <class... F>
OwnedGraph conditional(const HostStream& stream, unsigned& word, ConditionKind kind, F&&... bodies) {
    return captured(stream, [&] {
        const HostStream side;
        constexpr int count = static_cast<int>(sizeof...(F));
        Host::require_conditions(kind, count);
        host::Graph* graphs[sizeof...(F)] = {};
        const auto condition = Host::create_condition(Host::capturing_graph(stream.native()), &word);
        Host::capture_condition(stream.native(), condition, kind, count, graphs);
        int next = 0;
        const auto capture_body = [&](auto& body) {
            Host::begin_capture_into(side.native(), graphs[next++], CaptureMode::this_thread);
            side.enqueue(body);
            Host::end_capture_into(side.native());
        };
        (capture_body(bodies), ...);
    });
}

} // namespace

TEST_CASE("conditional nodes read their word when they are reached") {
    const HostStream stream;
    unsigned word = 0;
    std::string seen;
    const auto say = [&seen](char letter) { return [&seen, letter] { seen += letter; }; };
    const auto run = [&](const OwnedGraph& graph, const std::vector<unsigned>& values) {
        seen.clear();
        const OwnedExecutable executable = instantiated(graph);
        for (const unsigned value : values) {
            stream.enqueue([&word, value] { word = value; });
            launch(executable, stream);
        }
        stream.synchronize();
        return seen;
    };
    CHECK(run(conditional(stream, word, ConditionKind::if_nonzero, say('a')), {0, 1, 0, 7}) == "aa");
    CHECK(run(conditional(stream, word, ConditionKind::if_nonzero, say('a'), say('b')), {0, 1, 0}) == "bab");
    CHECK(run(conditional(stream, word, ConditionKind::select, say('a'), say('b'), say('c')), {2, 0, 1, 3}) ==
          "cab");
    const auto count_down = [&] {
        seen += '.';
        --word;
    };
    CHECK(run(conditional(stream, word, ConditionKind::while_nonzero, count_down), {0, 3, 2}) == ".....");
}

TEST_CASE("the nodes around a condition and inside it keep their order") {
    const HostStream stream;
    const HostStream side;
    unsigned outer = 0;
    unsigned inner = 0;
    std::string seen;
    const OwnedGraph graph = captured(stream, [&] {
        const auto within = [](const HostStream& of, const HostStream& body, unsigned& word, auto&& work) {
            host::Graph* bodies[1] = {};
            Host::capture_condition(of.native(),
                                    Host::create_condition(Host::capturing_graph(of.native()), &word),
                                    ConditionKind::while_nonzero, 1, bodies);
            Host::begin_capture_into(body.native(), bodies[0], CaptureMode::this_thread);
            work();
            Host::end_capture_into(body.native());
        };
        const HostStream deeper;
        stream.enqueue([&] { outer = 2; });
        within(stream, side, outer, [&] {
            side.enqueue([&] {
                seen += '(';
                inner = outer;
            });
            within(side, deeper, inner, [&] {
                deeper.enqueue([&] {
                    seen += 'i';
                    --inner;
                });
            });
            side.enqueue([&] {
                seen += ')';
                --outer;
            });
        });
        stream.enqueue([&] { seen += '!'; });
    });
    CHECK(Host::node_count(graph.get()) == 3); // bodies do not count
    CHECK(Host::edge_count(graph.get()) == 2);
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    launch(executable, stream);
    stream.synchronize();
    CHECK(seen == "(ii)(i)!(ii)(i)!");
}

TEST_CASE("graphs with conditions are compared by their bodies too") {
    const HostStream stream;
    unsigned word = 1;
    int number = 0;
    const auto put = [&number](int value) { return [&number, value] { number = value; }; };
    const OwnedExecutable executable =
        instantiated(conditional(stream, word, ConditionKind::if_nonzero, put(1)));
    CHECK(Host::update(executable.get(), conditional(stream, word, ConditionKind::if_nonzero, put(2)).get()));
    CHECK_FALSE(
        Host::update(executable.get(), conditional(stream, word, ConditionKind::select, put(3)).get()));
    CHECK_FALSE(Host::update(executable.get(),
                             conditional(stream, word, ConditionKind::if_nonzero, put(3), put(4)).get()));
    launch(executable, stream);
    stream.synchronize();
    CHECK(number == 2);
}

TEST_CASE("a body's capture is judged by itself") {
    const HostStream stream;
    const HostStream side;
    const HostStream third;
    HostEvent event;
    unsigned word = 1;
    const auto begin_body = [&] {
        host::Graph* body = nullptr;
        Host::capture_condition(stream.native(),
                                Host::create_condition(Host::capturing_graph(stream.native()), &word),
                                ConditionKind::if_nonzero, 1, &body);
        Host::begin_capture_into(side.native(), body, CaptureMode::this_thread);
    };
    const OwnedGraph graph = captured(stream, [&] {
        begin_body();
        event.record(side);
        third.wait(event);
        third.enqueue([] {});
        CHECK(contains(text_of([&] { Host::end_capture_into(side.native()); }), "not joined"));
        begin_body();
        CHECK_THROWS_AS((void)Host::end_capture(side.native()), Error);
        CHECK_FALSE(Host::is_capturing(side.native()));
    });
    CHECK(Host::node_count(graph.get()) == 2);
    // A body's end is no end of the whole.
    Host::begin_capture(stream.native(), CaptureMode::this_thread);
    CHECK_THROWS_AS(Host::end_capture_into(stream.native()), Error);
    CHECK_FALSE(Host::is_capturing(stream.native()));
    // What disturbs a body disturbs what it is part of.
    CHECK(contains(reason_of(stream,
                             [&] {
                                 begin_body();
                                 CHECK_THROWS_AS((void)Host::allocate_device(8), Error);
                                 CHECK_THROWS_AS(Host::end_capture_into(side.native()), Error);
                             }),
                   "allocate_device"));
}

TEST_CASE("a condition without a value or with bodies that it cannot have is refused") {
    const HostStream stream;
    unsigned word = 0;
    host::Graph* bodies[3] = {};
    const auto add = [&](unsigned* value, ConditionKind kind, int count) {
        return [&, value, kind, count] {
            Host::capture_condition(stream.native(), Host::create_condition(nullptr, value), kind, count,
                                    bodies);
        };
    };
    check_invalidates(stream, add(&word, ConditionKind::while_nonzero, 2), "capture_condition");
    check_invalidates(stream, add(&word, ConditionKind::if_nonzero, 3), "capture_condition");
    check_invalidates(stream, add(&word, ConditionKind::select, 0), "capture_condition");
    check_invalidates(stream, add(nullptr, ConditionKind::select, 1), "capture_condition");
}

} // namespace backend_host_graph_capture
