// A host stream's queue: how much it takes, and what becomes of it.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include <sluice/backend/detail/host/queue.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/on_stream.hpp"
#include "support/sanitized.hpp"

namespace backend_host_queue {

using namespace sluice;
using namespace sluice::test;

namespace {

/// This process's, where the system says.
std::size_t threads_now() {
    std::error_code none;
    std::size_t threads = 0;
    for ([[maybe_unused]] const auto& thread : std::filesystem::directory_iterator("/proc/self/task", none))
        ++threads;
    return threads;
}

} // namespace

TEST_CASE("a full queue makes the enqueuing thread wait as long as tasks end, and loses nothing") {
    const HostStream stream;
    std::vector<int> seen;
    const int tasks = static_cast<int>(host::Queue::capacity) + 500;
    seen.reserve(static_cast<std::size_t>(tasks));
    std::atomic<int> ended{0};
    for (int i = 0; i < tasks; ++i) {
        stream.enqueue([&seen, &ended, i] {
            seen.push_back(i);
            std::this_thread::sleep_for(std::chrono::microseconds(100));
            ++ended;
        });
        REQUIRE(i + 1 - ended <= static_cast<int>(host::Queue::capacity) + 1);
    }
    stream.sync();
    REQUIRE(seen.size() == static_cast<std::size_t>(tasks));
    for (int i = 0; i < tasks; ++i)
        REQUIRE(seen[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a thread that enqueues more than a queue holds before it lets the queue go on does not hang") {
    const HostStream stream;
    const ScopedLatch latch;
    int count = 0;
    hold(stream, latch);
    for (int i = 0; i < 5000; ++i)
        stream.enqueue([&count] { ++count; });
    CHECK_FALSE(latch.timed_out());
    latch.open();
    stream.sync();
    CHECK(count == 5000);

    const HeapCount heap; // it keeps the room
    latch.open();
    for (int i = 0; i < 5000; ++i)
        stream.enqueue([&count] { ++count; });
    stream.sync();
    CHECK(heap.allocations() == 0);
    CHECK(count == 10000);
}

TEST_CASE("a task that enqueues never waits for room, on its own stream or on another") {
    const HostStream stream;
    const HostStream other;
    const ScopedLatch latch;
    int here = 0;
    int there = 0;
    hold(other, latch);
    stream.enqueue([&] {
        for (int i = 0; i < 5000; ++i) {
            stream.enqueue([&here] { ++here; });
            other.enqueue([&there] { ++there; });
        }
        latch.open();
    });
    stream.sync(); // the task that enqueues,
    stream.sync(); // and what it enqueued
    other.sync();
    CHECK_FALSE(latch.timed_out());
    CHECK(here == 5000);
    CHECK(there == 5000);
}

TEST_CASE("a task that waits for its own stream is told so, and the stream goes on") {
    const HostStream stream;
    HostEvent event;
    std::string synchronizing;
    std::string waiting;
    bool done = true;
    stream.enqueue([&] {
        synchronizing = text_of([&] { stream.sync(); });
        event.record(stream);
        waiting = text_of([&] { event.sync(); });
        done = stream.is_done();
    });
    stream.sync();
    CHECK(contains(synchronizing, "a task cannot wait for the stream that runs it"));
    CHECK(contains(waiting, "a task cannot wait for an event that is recorded behind it"));
    CHECK_FALSE(done);
    event.sync();

    // Not caught, it fails the stream as any exception does.
    stream.enqueue([&stream] { stream.sync(); });
    CHECK(contains(text_of([&] { stream.sync(); }), "a task cannot wait for the stream"));

    // An inline stream within a task does not hide the stream around it.
    const HostStream outer;
    outer.enqueue([&] {
        const HostStream inner = HostStream::make_inline();
        inner.enqueue([&] { waiting = text_of([&] { outer.sync(); }); });
        inner.enqueue([&] { synchronizing = text_of([&] { inner.sync(); }); });
        inner.sync();
    });
    outer.sync();
    CHECK(contains(waiting, "a task cannot wait"));
    CHECK(contains(synchronizing, "a task cannot wait"));
}

TEST_CASE("a task may be the last that holds its own stream") {
    std::atomic<int> ran{0};
    const std::size_t threads = threads_now();
    const std::uint64_t alive = Host::counts().streams.alive;
    for (const bool with_thread : {true, false}) {
        auto stream = std::make_shared<HostStream>(with_thread ? HostStream() : HostStream::make_inline());
        const HostStreamRef ref = *stream;
        const ScopedLatch latch;
        if (with_thread)
            hold(*stream, latch);
        ref.enqueue([&ran, ref, owned = stream]() mutable {
            ref.enqueue([&ran] { ++ran; });
            if (owned.use_count() > 1) {
                CHECK_FALSE(owned->is_done());
                ref.enqueue([&ran, last = std::move(owned)]() mutable {
                    last.reset();
                    ++ran;
                });
            }
        });
        stream.reset();
        latch.open();
        CHECK(eventually([&] { return Host::counts().streams.alive == alive; }));
    }
    CHECK(eventually([&] { return ran >= 2; }));
    CHECK(eventually([&] { return threads_now() <= threads; })); // a stream's thread goes with it
    give_it_time();
}

TEST_CASE("the ring of tasks is used over and over") {
    const HostStream stream;
    int count = 0;
    for (int i = 0; i < 5000; ++i)
        stream.enqueue([&count] { ++count; });
    stream.sync();
    CHECK(count == 5000);
}

TEST_CASE("several threads may enqueue, and each one's order is kept") {
    const HostStream stream;
    std::vector<int> seen[3];
    {
        std::vector<std::thread> threads;
        for (auto& mine : seen) {
            threads.emplace_back([&stream, &mine] {
                for (int i = 0; i < 1000; ++i)
                    stream.enqueue([&mine, i] { mine.push_back(i); });
            });
        }
        for (std::thread& thread : threads)
            thread.join();
    }
    stream.sync();
    for (const std::vector<int>& mine : seen) {
        REQUIRE(mine.size() == 1000);
        for (int i = 0; i < 1000; ++i)
            REQUIRE(mine[static_cast<std::size_t>(i)] == i);
    }
}

TEST_CASE("a stream that is destroyed runs what is enqueued first") {
    std::atomic<int> ran{0};
    {
        const HostStream stream;
        const ScopedLatch latch;
        hold(stream, latch);
        for (int i = 0; i < 100; ++i)
            stream.enqueue([&ran] { ++ran; });
        CHECK(ran == 0);
    }
    CHECK(ran == 100);
}

TEST_CASE("threads of streams that go within their own tasks leave no stacks behind") {
    if (sanitized)
        return; // which keep ended threads' stacks themselves
    const auto address_space = [] {
        std::ifstream file("/proc/self/statm");
        std::size_t pages = 0;
        file >> pages;
        return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    };
    pthread_attr_t attributes;
    std::size_t stack = 0;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_getstacksize(&attributes, &stack) == 0);
    (void)pthread_attr_destroy(&attributes);
    constexpr std::size_t streams = 400;
    const std::size_t before = address_space();
    for (std::size_t i = 0; i < streams; ++i) {
        std::atomic<bool> gone{false};
        auto* const stream = new HostStream;
        stream->enqueue([&gone, stream] {
            delete stream;
            gone = true;
        });
        while (!gone)
            std::this_thread::yield();
    }
    CHECK(address_space() < before + streams * stack / 2);
}

// For the thread sanitizer, which sees it whenever it comes.
TEST_CASE("a stream may go within its own task before the thread that enqueued that is back") {
    std::atomic<int> gone{0};
    for (int i = 0; i < 50; ++i) {
        auto* const stream = new HostStream;
        stream->enqueue([&gone, stream] {
            delete stream;
            ++gone;
        });
    }
    while (gone < 50)
        std::this_thread::yield();
    CHECK(gone == 50);
}

TEST_CASE("synchronizing waits for what is enqueued by then") {
    const HostStream stream;
    const HostStream other;
    const ScopedLatch later;
    int ran = 0;
    stream.enqueue([&ran] { ran = 1; });
    stream.sync();
    CHECK(ran == 1);

    // A task may enqueue further work on other streams.
    std::atomic<bool> reached{false};
    stream.enqueue([&] { other.enqueue([&reached] { reached = true; }); });
    stream.sync();
    other.sync();
    CHECK(reached);
}

} // namespace backend_host_queue
