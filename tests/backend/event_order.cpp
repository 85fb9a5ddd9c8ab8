// What a wait for an event orders, and what it does not.
#include "support/backend.hpp"
#include "support/doctest.hpp"
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
    CHECK_FALSE(reader.is_done());
    latch.open();
    reader.sync();
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
    CHECK(eventually([&] { return reader.is_done(); }));
    CHECK_FALSE(writer.is_done());
    CHECK_FALSE(later.timed_out());
}

TEST_CASE_TEMPLATE("an event that was never recorded delays nothing", B, TestBackend) {
    const BasicStream<B> stream;
    const BasicEvent<B> never;
    CHECK(never.is_done());
    never.sync();

    bool ran = false;
    stream.wait(never);
    run_on(stream, [&ran] { ran = true; });
    stream.sync();
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
    CHECK_FALSE(early_reader.is_done());

    first.open();
    CHECK(eventually([&] { return early_reader.is_done(); }));
    CHECK_FALSE(late_reader.is_done());
    CHECK_FALSE(written.is_done()); // the event stands for the later record

    second.open();
    written.sync();
    late_reader.sync();
    CHECK(written.is_done());
    CHECK_FALSE(first.timed_out());
    CHECK_FALSE(second.timed_out());
}

TEST_CASE_TEMPLATE("a later record on another stream does not end waits for the earlier one", B,
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
    quick.sync();
    give_it_time();
    CHECK_FALSE(reader.is_done());

    latch.open();
    reader.sync();
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
    CHECK_FALSE(event.is_done());

    latch.open();
    event.sync();
    CHECK(ran);
    CHECK(event.is_done());
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
    CHECK_FALSE(reader.is_done());
    latch.open();
    reader.sync();
    writer.sync();
    CHECK(read == 42);
}

TEST_CASE_TEMPLATE("a stream may wait for its own event", B, TestBackend) {
    const BasicStream<B> stream;
    BasicEvent<B> event;
    bool ran = false;
    event.record(stream);
    stream.wait(event);
    run_on(stream, [&ran] { ran = true; });
    CHECK(eventually([&] { return stream.is_done(); }));
    CHECK(ran);
}

} // namespace backend_event_order
