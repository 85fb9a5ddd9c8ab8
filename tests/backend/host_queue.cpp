// A host stream's queue: how much it takes, and what becomes of it.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/on_stream.hpp"

namespace backend_host_queue {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("a full queue makes whoever enqueues wait, and loses nothing") {
    const HostStream stream;
    const ScopedLatch latch;
    std::vector<int> seen;
    seen.reserve(2000);
    hold(stream, latch);
    const int room = static_cast<int>(host::Queue::capacity) - 1; // the first task is outstanding too
    for (int i = 0; i < room; ++i)
        stream.enqueue([&seen, i] { seen.push_back(i); });
    CHECK_FALSE(latch.timed_out()); // none of these had to wait

    std::atomic<bool> entered{false};
    std::thread late([&] {
        stream.enqueue([&seen, room] { seen.push_back(room); });
        entered = true;
    });
    give_it_time();
    CHECK_FALSE(entered.load());

    latch.open();
    late.join();
    stream.synchronize();
    CHECK_FALSE(latch.timed_out());
    REQUIRE(seen.size() == host::Queue::capacity);
    for (int i = 0; i <= room; ++i)
        CHECK(seen[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("the ring of tasks is used over and over") {
    const HostStream stream;
    int count = 0;
    for (int i = 0; i < 5000; ++i)
        stream.enqueue([&count] { ++count; });
    stream.synchronize();
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
    stream.synchronize();
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

TEST_CASE("synchronizing waits for what is enqueued by then") {
    const HostStream stream;
    const HostStream other;
    const ScopedLatch later;
    int ran = 0;
    stream.enqueue([&ran] { ran = 1; });
    stream.synchronize();
    CHECK(ran == 1);

    // A task may enqueue further work on other streams.
    std::atomic<bool> reached{false};
    stream.enqueue([&] { other.enqueue([&reached] { reached = true; }); });
    stream.synchronize();
    other.synchronize();
    CHECK(reached);
}

} // namespace backend_host_queue
