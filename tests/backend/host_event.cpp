// Host events on several streams at once, and their lifetime.
#include <memory>

#include "support/doctest.hpp"
#include "support/on_stream.hpp"

namespace backend_host_event {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("recorded on several streams, an event stands for the latest record alone") {
    const HostStream first;
    const HostStream second;
    const HostStream third;
    const HostStream reader;
    HostEvent event;
    const ScopedLatch latch;

    hold(first, latch);
    event.record(first);
    reader.wait(event);
    event.record(second);
    event.record(third);
    second.sync();
    event.sync(); // the later two records are reached before the first
    CHECK(event.is_done());
    CHECK_FALSE(reader.is_done()); // who waits for the first still does

    latch.open();
    CHECK(eventually([&] { return reader.is_done(); }));
    CHECK(event.is_done());

    event.record(second); // and it goes on as before
    event.sync();
    CHECK(event.is_done());
}

TEST_CASE("records that are reached in any order add up") {
    constexpr int streams = 4;
    const HostStream stream[streams];
    HostEvent event;
    for (int round = 0; round < 200; ++round) {
        for (const HostStream& each : stream)
            event.record(each);
        event.sync();
        REQUIRE(event.is_done());
    }
}

TEST_CASE("a wait is for the record made by then, however late the stream gets to it") {
    const HostStream writer;
    const HostStream reader;
    HostEvent event;
    const ScopedLatch writing;
    const ScopedLatch reading;

    hold(reader, reading);
    event.record(writer);
    reader.wait(event);
    hold(writer, writing);
    event.record(writer);
    reading.open();
    CHECK(eventually([&] { return reader.is_done(); }));
    CHECK_FALSE(event.is_done());
    CHECK_FALSE(writing.timed_out());
}

TEST_CASE("an event's memory lives as long as the tasks that refer to it") {
    const HostStream writer;
    const HostStream reader;
    const ScopedLatch latch;
    for (int i = 0; i < 50; ++i) {
        HostEvent event;
        if (i == 0)
            hold(writer, latch);
        event.record(writer);
        reader.wait(event);
    }
    CHECK_FALSE(reader.is_done());
    latch.open();
    reader.sync();
    CHECK_FALSE(latch.timed_out());
}

} // namespace backend_host_event
