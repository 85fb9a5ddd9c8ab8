// A task that throws fails its stream: later work is skipped, waits report it, nothing hangs.
#include <exception>
#include <stdexcept>
#include <string>

#include <sluice/backend/detail/host/event.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/on_stream.hpp"

namespace backend_host_failure {

using namespace sluice;
using namespace sluice::test;

namespace {
void fail(const HostStream& stream, const std::string& why) {
    stream.enqueue([why] { throw std::runtime_error(why); });
}
} // namespace

TEST_CASE("synchronizing reports what a task threw, with the original inside") {
    const HostStream stream;
    fail(stream, "the tape ran out");
    std::string nested;
    try {
        stream.sync();
        FAIL("synchronize did not throw");
    } catch (const Error& error) {
        CHECK(error.what() == std::string("work on a host stream failed: the tape ran out"));
        try {
            std::rethrow_if_nested(error);
        } catch (const std::runtime_error& original) {
            nested = original.what();
        }
    }
    CHECK(nested == "the tape ran out");
}

TEST_CASE("an exception of any type is carried") {
    const HostStream stream;
    stream.enqueue([] { throw 42; });
    int nested = 0;
    try {
        stream.sync();
    } catch (const Error& error) {
        CHECK(contains(error.what(), "an exception of an unknown type"));
        try {
            std::rethrow_if_nested(error);
        } catch (int number) {
            nested = number;
        }
    }
    CHECK(nested == 42);
}

TEST_CASE("after a failure, work is skipped until the failure is cleared") {
    const HostStream stream;
    int ran = 0;
    stream.enqueue([&ran] { ran += 1; });
    fail(stream, "first");
    stream.enqueue([&ran] { ran += 10; });
    CHECK_THROWS_AS(stream.sync(), Error);
    stream.enqueue([&ran] { ran += 100; });
    CHECK_THROWS_AS(stream.sync(), Error); // it stays failed
    CHECK(ran == 1);

    Host::clear_failure(stream.get());
    stream.enqueue([&ran] { ran += 1000; });
    stream.sync();
    CHECK(ran == 1001);
}

TEST_CASE("the first failure is the one reported") {
    const HostStream stream;
    const ScopedLatch latch;
    hold(stream, latch);
    fail(stream, "the cause");
    fail(stream, "a consequence");
    latch.open();
    CHECK(contains(text_of([&] { stream.sync(); }), "the cause"));
    CHECK(contains(text_of([&] { stream.sync(); }), "the cause"));
}

TEST_CASE("asking whether a failed stream is done reports the failure") {
    const HostStream stream;
    fail(stream, "broken");
    std::string text;
    CHECK(eventually([&] {
        bool done = false;
        text = text_of([&] { done = stream.is_done(); });
        CHECK_FALSE(done); // it never says that all is well
        return !text.empty();
    }));
    CHECK(contains(text, "broken"));
}

TEST_CASE("asking never passes a failure over in the moment that it happens") {
    for (int round = 0; round < 300; ++round) {
        const HostStream stream;
        fail(stream, "broken");
        bool said_done = false;
        bool reported = false;
        while (!said_done && !reported)
            reported = !text_of([&] { said_done = stream.is_done(); }).empty();
        REQUIRE_FALSE(said_done);
    }
}

TEST_CASE("throw_if_failed asks without waiting") {
    const HostStream stream;
    const ScopedLatch latch;
    Host::throw_if_failed(stream.get());
    hold(stream, latch);
    fail(stream, "broken");
    Host::throw_if_failed(stream.get()); // not known yet
    latch.open();
    CHECK_THROWS_AS(stream.sync(), Error);
    CHECK(contains(text_of([&] { Host::throw_if_failed(stream.get()); }), "broken"));
    Host::clear_failure(stream.get());
    Host::throw_if_failed(stream.get());
}

TEST_CASE("an event on a failed stream is reached, and reports the failure") {
    const HostStream stream;
    HostEvent event;
    fail(stream, "broken");
    event.record(stream);
    CHECK(contains(text_of([&] { event.sync(); }), "broken"));
    CHECK(contains(text_of([&] { (void)event.is_done(); }), "broken"));

    Host::clear_failure(stream.get());
    event.record(stream);
    event.sync();
    CHECK(event.is_done());
}

TEST_CASE("a stream that waits for what a failed stream recorded fails with it, and so on") {
    const HostStream first;
    const HostStream second;
    const HostStream third;
    const HostStream apart;
    HostEvent before;
    HostEvent forth;
    HostEvent further;
    before.record(first);
    fail(first, "the cause");
    forth.record(first);
    bool ran = false;
    second.wait(forth);
    second.enqueue([&ran] { ran = true; });
    further.record(second);
    third.wait(further);
    third.enqueue([&ran] { ran = true; });
    apart.wait(before); // recorded before the fault
    for (const HostStream* stream : {&third, &second, &first})
        CHECK(text_of([&] { stream->sync(); }) == "work on a host stream failed: the cause");
    CHECK_FALSE(ran);
    apart.sync();

    for (const HostStream* stream : {&third, &second, &first})
        Host::clear_failure(stream->get());
    forth.record(first);
    second.wait(forth);
    second.enqueue([&ran] { ran = true; });
    further.record(second);
    third.wait(further);
    third.sync();
    CHECK(ran);
}

TEST_CASE("the first cause is kept") {
    const HostStream first;
    const HostStream second;
    HostEvent event;
    const ScopedLatch latch;
    hold(first, latch);
    fail(first, "another cause");
    event.record(first);
    fail(second, "the cause");
    second.wait(event);
    latch.open();
    CHECK(contains(text_of([&] { second.sync(); }), "the cause"));
    CHECK(contains(text_of([&] { first.sync(); }), "another cause"));
}

TEST_CASE("a wait is for its own record's failure, whatever is recorded after") {
    const HostStream failing;
    const HostStream good;
    const HostStream late;
    const HostStream later;
    HostEvent event;
    const ScopedLatch latch;
    hold(late, latch);
    fail(failing, "broken");
    event.record(failing);
    late.wait(event);
    event.record(good);
    later.wait(event);
    later.sync(); // its record is the good one
    event.sync();
    latch.open();
    CHECK(contains(text_of([&] { late.sync(); }), "broken"));

    for (int i = 0; i < 100; ++i) { // nothing adds up
        event.record(failing);
        later.wait(event);
        event.record(good);
        later.wait(event);
    }
    CHECK(contains(text_of([&] { later.sync(); }), "broken"));
}

TEST_CASE("a wait is for its own record's failure, also where a later record is reached first") {
    for (const bool fails : {true, false}) {
        const HostStream early;
        const HostStream good;
        const HostStream late;
        HostEvent event;
        const ScopedLatch latch;
        hold(early, latch);
        if (fails)
            fail(early, "broken");
        event.record(early);
        late.wait(event);
        event.record(good);
        good.sync();
        event.sync(); // of the latest record
        latch.open();
        CHECK(contains(text_of([&] { late.sync(); }), "broken") == fails);
        late.wait(event); // of the good record
        early.enqueue([] {});
        if (!fails)
            late.sync();
    }
}

TEST_CASE("a failed stream runs nothing of a launch that waits for another one") {
    const HostStream stream;
    const HostStream other;
    HostEvent event;
    int ran = 0;
    Host::begin_capture(stream.get(), CaptureMode::this_thread);
    stream.enqueue([&ran] { ++ran; });
    host::Graph* const graph = Host::end_capture(stream.get());
    host::GraphExec* const executable = Host::instantiate(graph);
    fail(other, "broken");
    event.record(other);
    stream.wait(event);
    Host::launch(executable, stream.get());
    CHECK(contains(text_of([&] { stream.sync(); }), "broken"));
    CHECK(ran == 0);
    Host::clear_failure(stream.get());
    Host::launch(executable, stream.get());
    stream.sync();
    CHECK(ran == 1);
    Host::destroy_graph_exec(executable);
    Host::destroy_graph(graph);
}

TEST_CASE("a failed stream still waits for others' events") {
    const HostStream other;
    const HostStream stream;
    HostEvent event;
    HostEvent behind;
    const ScopedLatch latch;
    fail(stream, "broken");
    hold(other, latch);
    event.record(other);
    stream.wait(event);
    behind.record(stream);
    CHECK(eventually([&] { return !text_of([&] { (void)stream.is_done(); }).empty(); }));
    CHECK_FALSE(behind.get()->is_done()); // order is kept although work is skipped
    latch.open();
    CHECK(contains(text_of([&] { behind.sync(); }), "broken"));
}

TEST_CASE("a failed stream can be destroyed") {
    const HostStream stream;
    fail(stream, "broken");
    stream.enqueue([] {});
}

} // namespace backend_host_failure
