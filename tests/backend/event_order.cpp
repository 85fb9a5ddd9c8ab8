// What a wait for an event orders, and what it does not.
#include <doctest/doctest.h>

#include "support/backend.hpp"
#include "support/on_stream.hpp"

namespace backend_event_order {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("work behind a wait comes after the record", B, TestBackend) {
    const BasicStream<B> writer;
    const BasicStream<B> reader;
    BasicEvent<B> written;
    const ScopedLatch latch;
    int value = 0;
    int read = -1;

    hold(writer, latch);
    run_on(writer, [&value] { value = 42; });
    written.record(writer);
    reader.wait(written);
    run_on(reader, [&value, &read] { read = value; });

    give_it_time();
    CHECK_FALSE(reader.done());
    latch.open();
    reader.synchronize();
    CHECK(read == 42);
}

TEST_CASE_TEMPLATE("a wait covers what was enqueued before the record, and no more", B, TestBackend) {
    const BasicStream<B> writer;
    const BasicStream<B> reader;
    BasicEvent<B> written;
    const ScopedLatch later;

    written.record(writer);
    hold(writer, later);
    reader.wait(written);
    CHECK(eventually([&] { return reader.done(); }));
    CHECK_FALSE(writer.done());
    CHECK_FALSE(later.timed_out());
}

TEST_CASE_TEMPLATE("an event that was never recorded holds nobody up", B, TestBackend) {
    const BasicStream<B> stream;
    const BasicEvent<B> never;
    CHECK(never.done());
    never.synchronize();

    bool ran = false;
    stream.wait(never);
    run_on(stream, [&ran] { ran = true; });
    stream.synchronize();
    CHECK(ran);
}

TEST_CASE_TEMPLATE("recorded again, who waits already waits for the earlier record", B, TestBackend) {
    const BasicStream<B> writer;
    const BasicStream<B> early_reader;
    const BasicStream<B> late_reader;
    BasicEvent<B> written;
    const ScopedLatch first;
    const ScopedLatch second;

    hold(writer, first);
    written.record(writer);
    early_reader.wait(written);
    hold(writer, second);
    written.record(writer);
    late_reader.wait(written);
    CHECK_FALSE(early_reader.done());

    first.open();
    CHECK(eventually([&] { return early_reader.done(); }));
    CHECK_FALSE(late_reader.done());
    CHECK_FALSE(written.done()); // the event stands for the later record

    second.open();
    written.synchronize();
    late_reader.synchronize();
    CHECK(written.done());
    CHECK_FALSE(first.timed_out());
    CHECK_FALSE(second.timed_out());
}

TEST_CASE_TEMPLATE("a later record on another stream lets nobody go who waits for the earlier one", B,
                   TestBackend) {
    const BasicStream<B> slow;
    const BasicStream<B> quick;
    const BasicStream<B> reader;
    BasicEvent<B> event;
    const ScopedLatch latch;

    hold(slow, latch);
    event.record(slow);
    reader.wait(event);
    event.record(quick);
    quick.synchronize();
    give_it_time();
    CHECK_FALSE(reader.done());

    latch.open();
    reader.synchronize();
    CHECK_FALSE(latch.timed_out());
}

TEST_CASE_TEMPLATE("the caller can wait for an event, or ask", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> event{EventOptions{.sleep_while_waiting = true}};
    const ScopedLatch latch;
    bool ran = false;

    hold(stream, latch);
    run_on(stream, [&ran] { ran = true; });
    event.record(stream);
    CHECK_FALSE(event.done());

    latch.open();
    event.synchronize();
    CHECK(ran);
    CHECK(event.done());
}

TEST_CASE_TEMPLATE("an event may be destroyed while others wait for it", B, TestBackend) {
    const BasicStream<B> writer;
    const BasicStream<B> reader;
    const ScopedLatch latch;
    int value = 0;
    int read = -1;
    {
        BasicEvent<B> written;
        hold(writer, latch);
        run_on(writer, [&value] { value = 42; });
        written.record(writer);
        reader.wait(written);
        run_on(reader, [&value, &read] { read = value; });
    }
    give_it_time();
    CHECK_FALSE(reader.done());
    latch.open();
    reader.synchronize();
    writer.synchronize();
    CHECK(read == 42);
}

TEST_CASE_TEMPLATE("a stream may wait for its own event", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> event;
    bool ran = false;
    event.record(stream);
    stream.wait(event);
    run_on(stream, [&ran] { ran = true; });
    CHECK(eventually([&] { return stream.done(); }));
    CHECK(ran);
}

} // namespace backend_event_order
