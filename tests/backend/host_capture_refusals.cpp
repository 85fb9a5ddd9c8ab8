// What cannot be captured from host streams, and what a capture that failed leaves behind.
#include <memory>
#include <string>
#include <thread>

#include "backend/host_capture_case.hpp"
#include "backend/host_graph.hpp"
#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_host_capture_refusals {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a capture that failed keeps nothing, though an event of it lives") {
    const HostStream stream;
    HostEvent event;
    const auto held = std::make_shared<int>(0);
    CHECK_FALSE(reason_of(stream, [&] {
                    stream.enqueue([held] { ++*held; });
                    event.record(stream);
                    CHECK_THROWS_AS(stream.sync(), Error);
                }).empty());
    CHECK(held.use_count() == 1);
}

TEST_CASE("a capture whose stream goes keeps nothing, though an event of it lives") {
    HostEvent event;
    const auto held = std::make_shared<int>(0);
    {
        const HostStream stream;
        Host::begin_capture(stream.get(), CaptureMode::this_thread);
        stream.enqueue([held] { ++*held; });
        event.record(stream);
        CHECK(held.use_count() == 2);
    }
    CHECK(held.use_count() == 1);
}

TEST_CASE("a capture says what was refused first") {
    const HostStream stream;
    const std::string text = reason_of(stream, [&] {
        CHECK_THROWS_AS(stream.sync(), Error);
        CHECK_THROWS_AS((void)stream.is_done(), Error);
    });
    CHECK(contains(text, "sync"));
    CHECK_FALSE(contains(text, "is_done"));
}

TEST_CASE("waiting for a stream or event that is being captured is refused") {
    const HostStream stream;
    HostEvent event;
    check_invalidates(
        stream, [&] { stream.sync(); }, "sync");
    check_invalidates(
        stream, [&] { (void)stream.is_done(); }, "is_done");
    const auto recorded = [&](auto&& call) {
        return [&, call] {
            event.record(stream);
            call();
        };
    };
    check_invalidates(stream, recorded([&] { event.sync(); }), "waiting for an event");
    check_invalidates(stream, recorded([&] { (void)event.is_done(); }), "whether an event is done");
}

TEST_CASE("an event that was captured is of no use outside, until it is recorded again") {
    const HostStream stream;
    HostEvent event{EventOptions{.timing = true}};
    HostEvent plain{EventOptions{.timing = true}};
    plain.record(stream);
    stream.sync();
    const OwnedGraph graph = captured(stream, [&] { event.record(stream); });
    CHECK_THROWS_AS(event.sync(), Error);
    CHECK_THROWS_AS((void)event.is_done(), Error);
    CHECK(contains(text_of([&] { stream.wait(event); }), "capture that is over"));
    CHECK(contains(text_of([&] { (void)elapsed_milliseconds(event, plain); }), "was captured"));
    const std::string text = reason_of(stream, [&] { CHECK_THROWS_AS(stream.wait(event), Error); });
    CHECK(contains(text, "another capture"));
    event.record(stream);
    event.sync();
    CHECK(event.is_done());
    stream.wait(event);
    CHECK(elapsed_milliseconds(plain, event) >= 0);
    // Also while another stream is being captured.
    const HostStream other;
    (void)captured(other, [&] { stream.wait(event); });
    stream.sync();
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
    Host::begin_capture(first.get(), CaptureMode::this_thread);
    const std::string text = reason_of(second, [&] {
        event.record(first);
        CHECK_THROWS_AS(second.wait(event), Error);
    });
    CHECK(contains(text, "another capture"));
    CHECK(contains(text_of([&] { (void)Host::end_capture(first.get()); }), "another capture"));
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
    void* const ordered = Host::allocate_device(8, stream.get());
    CHECK(contains(reason_of(stream, [&] { Host::free_device(ordered, stream.get()); }), "freed"));
    CHECK(alive_now<Host>() == before); // freed it was

    void* memory = nullptr;
    const OwnedGraph graph = captured(
        stream, [&] { memory = Host::allocate_device(8); }, CaptureMode::relaxed);
    Host::free_device(memory);
}

TEST_CASE("a launch cannot be captured") {
    const HostStream stream;
    const OwnedExecutable executable = instantiated(captured(stream, [] {}));
    check_invalidates(
        stream, [&] { launch(executable, stream); }, "launch");
    check_invalidates(
        stream, [&] { Host::upload(executable.get(), stream.get()); }, "upload");
}

TEST_CASE("captures begin and end in pairs, on one stream and one thread") {
    const HostStream stream;
    const HostStream side;
    HostEvent event;
    CHECK(contains(text_of([&] { (void)Host::end_capture(stream.get()); }), "not being captured"));
    CHECK_THROWS_AS((void)Host::capturing_graph(stream.get()), Error);

    const OwnedGraph twice = captured(stream, [&] {
        CHECK_THROWS_AS(Host::begin_capture(stream.get(), CaptureMode::this_thread), Error);
        stream.enqueue([] {}); // that did the capture no harm
    });
    CHECK(Host::node_count(twice.get()) == 1);
    CHECK(contains(reason_of(stream,
                             [&] {
                                 event.record(stream);
                                 side.wait(event);
                                 CHECK_THROWS_AS((void)Host::end_capture(side.get()), Error);
                             }),
                   "the stream joined the capture"));
    CHECK(contains(reason_of(stream,
                             [&] {
                                 std::thread([&] {
                                     CHECK_THROWS_AS((void)Host::end_capture(stream.get()), Error);
                                 }).join();
                             }),
                   "the thread that began"));
}

TEST_CASE("a capture that is invalid takes no record, no wait and no memory, and nothing is left of them") {
    const HostStream stream, other;
    HostEvent before, event;
    const Alive alive = alive_now<Host>();
    const std::string text = reason_of(stream, [&] {
        stream.enqueue([] {});
        before.record(stream);
        CHECK_THROWS_AS(stream.sync(), Error);
        const auto refused = [](auto call) { CHECK(contains(text_of(call), "capture is invalid")); };
        refused([&] { event.record(stream); });
        refused([&] { other.wait(before); });
        refused([&] { (void)Host::capturing_graph(stream.get()); });
        refused([&] { (void)Host::allocate_device(64, stream.get()); });
        CHECK_FALSE(Host::is_capturing(other.get()));
    });
    CHECK(contains(text, "sync: "));
    CHECK(alive_now<Host>() == alive);
}

} // namespace backend_host_capture_refusals
