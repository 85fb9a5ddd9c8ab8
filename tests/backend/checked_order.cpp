// What orders two accesses, and what does not: streams, events, semaphores, the host, memory.
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/backend/checked.hpp>
#include <sluice/backend/semaphore.hpp>
#include <sluice/memory.hpp>

#include "support/checked_mistakes.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace sluice::test::backend_checked_order {
namespace {

using B = CheckedTestBackend;
using Stream = BasicStream<B>;
using Event = BasicEvent<B>;
template <class T>
using Device = DeviceBuffer<T, B>;
template <class T>
using Pinned = PinnedBuffer<T, B>;
using checked::Mistake;

struct Fixture : NoMistakesLeft {
    Stream a, b, c;
    Device<float> device{64};
    Pinned<float> pinned{64};
    Fixture() {
        name_buffer(device, "weights");
        fill(a, device, 0.0f);
        a.sync();
    }
    ~Fixture() {
        for (const Stream* stream : {&a, &b, &c})
            stream->sync();
    }
};

TEST_CASE_FIXTURE(Fixture, "A write and a read on two streams race without an event, and not with one") {
    copy(a, device, pinned);
    const checked::Finding found = mistake_of([&] { reads(b, device, "kernel"); });
    CHECK(found.mistake == Mistake::race);
    CHECK(found.buffer == "'weights'");
    CHECK(found.first.operation == "copy");
    CHECK(found.first.writes);
    CHECK(found.second.operation == "kernel");
    CHECK_FALSE(found.second.writes);
    CHECK(found.address == static_cast<const void*>(device.data()));
    CHECK(found.bytes == device.bytes());
    CHECK(found.missing_edge.find("record an event on " + found.first.stream) != std::string::npos);

    Event event;
    event.record(a);
    b.wait(event);
    CHECK(is_right([&] { reads(b, device); }));
    CHECK(is_right([&] { reads(a, device); })); // two reads
    CHECK(mistake_of([&] { fill(a, device, 1.0f); }).first.stream != found.first.stream);
}

TEST_CASE_FIXTURE(Fixture,
                  "A span that is longer than any memory is refused, and would reach up to its end") {
    // So many of 4 bytes that the number of bytes is 4 again, or the end an address below the begin.
    const std::size_t most = ~std::size_t{0} / sizeof(float);
    for (const std::size_t count : {most + 2, most}) {
        const DeviceSpan<float, B> said{device.data(), count};
        CHECK(text_of([&] { reads(b, said); }) ==
              "reads: for the memory a pointer to " + detail::counted(count, "element") +
                  " of 4 bytes each was given; expected memory that holds as many");
        // As a member of a batch, of which nothing is said.
        const auto last = reinterpret_cast<std::uintptr_t>(said.data()) +
                          detail::addressable_bytes(detail::piece_of_span(said));
        CHECK(last == ~std::uintptr_t{0});
    }
}

TEST_CASE_FIXTURE(Fixture, "A wait stands for the record that is the latest when it is made") {
    Event event;
    event.record(a);
    copy(a, device, pinned);
    b.wait(event); // of before the copy
    CHECK(mistake_of([&] { reads(b, device); }).mistake == Mistake::race);
    b.wait(event);
    CHECK(mistake_of([&] { reads(b, device); }).mistake == Mistake::race);
    event.record(a);
    CHECK(mistake_of([&] { reads(b, device); }).mistake == Mistake::race); // recorded, and not waited for
    b.wait(event);
    CHECK(is_right([&] { reads(b, device); }));
}

TEST_CASE_FIXTURE(Fixture, "Order goes from stream to stream to stream") {
    Event first, second;
    writes(a, device);
    first.record(a);
    b.wait(first);
    second.record(b);
    c.wait(second);
    CHECK(is_right([&] { writes(c, device); }));
    CHECK(mistake_of([&] { reads(b, device); }).mistake == Mistake::race);
}

TEST_CASE_FIXTURE(Fixture, "Other bytes of a buffer are no race") {
    writes(a, device.first(32));
    CHECK(is_right([&] { writes(b, device.last(32)); }));
    const checked::Finding found = mistake_of([&] { writes(c, device.subspan(30, 4)); });
    CHECK(found.bytes == 2 * sizeof(float));
}

TEST_CASE_FIXTURE(Fixture, "The host's waits and its queries that were answered yes order") {
    SUBCASE("stream") {
        writes(a, device);
        a.sync();
    }
    SUBCASE("event") {
        writes(a, device);
        Event event;
        event.record(a);
        event.sync();
    }
    SUBCASE("query") {
        writes(a, device);
        Event event;
        event.record(a);
        while (!event.is_done()) {
        }
    }
    SUBCASE("query of a stream") {
        writes(a, device);
        while (!a.is_done()) {
        }
    }
    CHECK(is_right([&] { writes(b, device); }));
}

TEST_CASE_FIXTURE(Fixture, "A sync of another stream, or one before the work, orders nothing") {
    a.sync();
    writes(a, device);
    b.sync();
    CHECK(mistake_of([&] { writes(b, device); }).mistake == Mistake::race);
}

TEST_CASE_FIXTURE(Fixture, "A host that reads results before they are there") {
    fill(a, device, 3.0f);
    copy(a, pinned, device);
    const checked::Finding found = mistake_of([&] { (void)(pinned[5] == 3.0f); });
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.missing_edge.find("sync()") != std::string::npos);
    CHECK(mistake_of([&] { host_reads(pinned); }).mistake == Mistake::host_race);
    a.sync();
    CHECK(is_right([&] { CHECK(pinned[5] == 3.0f); }));
}

TEST_CASE_FIXTURE(Fixture, "A host that refills what a copy may still read") {
    pinned[0] = 1.0f; // a number that another one can be added to: what is changed is known by its bytes
    reads(a, pinned, "copy");                            // said alone, so that nothing races in fact
    CHECK(is_right([&] { (void)(pinned[0] == 1.0f); })); // to read it is right
    CHECK(is_right([&] { (void)pinned.data(); }));
    pinned[0] = pinned[0] + 1.0f;
    const checked::Finding found = mistake_of([&] {
        b.wait(Event());
        reads(b, pinned);
    });
    CHECK(found.mistake == Mistake::host_race);
    CHECK(found.second.writes);
    CHECK(mistake_of([&] { host_writes(pinned, "loader"); }).second.operation == "loader");
    a.sync();
    CHECK(is_right([&] {
        pinned[0] = 2.0f;
        copy(a, device, pinned);
    }));
}

TEST_CASE_FIXTURE(Fixture, "Semaphores order streams and threads, signalled before the wait or after it") {
    BasicSemaphore<B> semaphore;
    writes(a, device);
    SUBCASE("signalled first") {
        semaphore.signal(a, 1);
        semaphore.wait(b, 1);
        CHECK(is_right([&] { writes(b, device); }));
    }
    SUBCASE("signalled by the host") {
        a.sync();
        semaphore.wait(b, 1);
        semaphore.signal(1);
        CHECK(is_right([&] { writes(b, device); }));
    }
    SUBCASE("waited for first") {
        semaphore.wait(b, 1);
        semaphore.signal(a, 1);
        CHECK(is_right([&] { writes(b, device); }));
    }
    SUBCASE("seen by the host") {
        semaphore.signal(a, 3);
        while (!semaphore.reached(3)) {
        }
        CHECK(is_right([&] { writes(b, device); }));
    }
    SUBCASE("signalled before the work") {
        writes(c, device.first(0));
        BasicSemaphore<B> early;
        early.signal(a, 1);
        writes(a, device);
        early.wait(b, 1);
        CHECK(mistake_of([&] { writes(b, device); }).mistake == Mistake::race);
    }
    a.sync();
    b.sync();
}

TEST_CASE_FIXTURE(Fixture, "Memory that is freed while work uses it, and used when it is freed") {
    {
        Device<float> gone(16);
        fill(a, gone, 1.0f);
        const DeviceSpan<const float, B> span = gone.span();
        a.sync();
        gone = Device<float>();
        CHECK(mistake_of([&] { reads(b, span); }).mistake == Mistake::use_after_free);
    }
    const auto free_too_early = [&] {
        {
            const Device<float> busy(16);
            writes(a, busy);
        }
        reads(b, device); // The destructor cannot throw: this call does.
    };
    CHECK(mistake_of(free_too_early).mistake == Mistake::use_after_free);
}

TEST_CASE_FIXTURE(Fixture, "Memory in the order of a stream") {
    Device<float> ordered(16, a.ref());
    CHECK(is_right([&] { fill(a, ordered, 1.0f); }));
    CHECK(mistake_of([&] { reads(b, ordered); }).mistake == Mistake::race);
    Event event;
    event.record(a);
    b.wait(event);
    CHECK(is_right([&] { reads(b, ordered); }));
    event.record(b);
    a.wait(event);
    CHECK(is_right([&] { ordered = Device<float>(); }));
}

TEST_CASE_FIXTURE(Fixture, "Device memory that nothing has written") {
    Device<float> empty(16);
    const auto read = [&] { copy(a, pinned.span().first(16), empty); };
    if constexpr (KernelGraphBackend<B>) {
        TestBackend::fill_bytes(empty.data(), 0, empty.bytes(), a.get()); // unseen, as a kernel would
        CHECK(is_right(read));
    } else {
        CHECK(mistake_of(read).mistake == Mistake::uninitialized_read);
    }
}

TEST_CASE_FIXTURE(Fixture,
                  "Callables of a stream are its work: what they say they touch is ordered as it is") {
    std::vector<std::string> thrown;
    a.enqueue([&] { host_writes(pinned); });
    a.sync();
    a.enqueue([&] { host_writes(pinned, "task"); });
    Event event;
    event.record(a);
    b.wait(event);
    CHECK(is_right([&] { reads(b, pinned); }));
    a.sync();
    b.sync();
}

TEST_CASE_FIXTURE(Fixture,
                  "A wait that never orders anything is told of, and one that sometimes does is not") {
    Event event, other;
    for (int i = 0; i < 3; ++i) {
        writes(a, device);
        event.record(a);
        b.wait(event);
        b.wait(event);
        reads(b, device);
        other.record(b);
        a.wait(other);
    }
    const std::vector<checked::Finding> all = checked::findings();
    REQUIRE(all.size() == 1);
    CHECK(all[0].mistake == Mistake::unnecessary_wait);
    CHECK(all[0].count == 3);
    checked::forget();
}

TEST_CASE_FIXTURE(Fixture, "Mistakes can be collected instead, each once with a count") {
    const bool before = checked::throw_mistakes(false);
    writes(a, device);
    for (int i = 0; i < 4; ++i)
        reads(b, device);
    checked::throw_mistakes(before);
    const std::vector<checked::Finding> all = checked::findings();
    REQUIRE(all.size() == 1);
    CHECK(all[0].count == 4);
    CHECK(checked::report().find("(4 times)") != std::string::npos);
    checked::forget();
}

} // namespace
} // namespace sluice::test::backend_checked_order
