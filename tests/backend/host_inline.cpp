// Host streams without a thread: the enqueuing thread runs the work.
#include <atomic>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sluice/backend/semaphore.hpp>
#include <sluice/memory/copy.hpp>

#include "backend/host_graph.hpp"
#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/heap_count.hpp"
#include "support/on_stream.hpp"

namespace backend_host_inline {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("work of an inline stream runs at once, on the caller's thread and in order") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream = HostStream::make_inline();
        CHECK(alive_now<Host>().streams == before.streams + 1);
        const HostStreamRef ref = stream;
        std::vector<int> seen;
        std::thread::id thread;
        ref.enqueue([&] {
            thread = std::this_thread::get_id();
            seen.push_back(1);
        });
        CHECK(thread == std::this_thread::get_id());
        CHECK(seen == std::vector<int>{1});

        DeviceBuffer<int, Host> device(2);
        PinnedBuffer<int, Host> pinned(2);
        pinned[0] = 4;
        pinned[1] = 5;
        copy(ref, device, pinned);
        CHECK(device.data()[1] == 5);
        fill_bytes(ref, device, 0);
        CHECK(device.data()[1] == 0);
        CHECK(stream.is_done());
        stream.sync();
    }
    CHECK(alive_now<Host>() == before);
}

TEST_CASE("what a task enqueues on its own stream runs right after it") {
    const HostStream stream = HostStream::make_inline();
    std::vector<int> seen;
    stream.enqueue([&] {
        stream.enqueue([&] {
            seen.push_back(2);
            stream.enqueue([&] { seen.push_back(4); });
        });
        stream.enqueue([&] { seen.push_back(3); });
        seen.push_back(1);
        CHECK_FALSE(stream.is_done());
    });
    CHECK(seen == std::vector<int>{1, 2, 3, 4});

    int count = 0; // as many as do not fit into what the stream begins with
    stream.enqueue([&] {
        for (int i = 0; i < 5000; ++i)
            stream.enqueue([&count] { ++count; });
        CHECK(count == 0);
    });
    CHECK(count == 5000);
}

TEST_CASE("events and semaphores order an inline stream with others, and the caller waits for them") {
    const HostStream stream = HostStream::make_inline();
    const HostStream other;
    HostEvent event;
    HostEvent back;
    HostSemaphore semaphore;
    int number = 0;
    const ScopedLatch latch;
    hold(other, latch);
    other.enqueue([&number] { number = 7; });
    event.record(other);
    std::thread opener([handle = latch.handle()] {
        give_it_time();
        handle.open();
    });
    stream.wait(event); // comes back when the latch is open
    CHECK(number == 7);
    opener.join();
    back.record(stream);
    CHECK(back.is_done());
    other.wait(back);
    semaphore.signal(stream, 1);
    CHECK(semaphore.value() == 1);
    semaphore.wait(stream, 1);
    other.sync();
}

TEST_CASE("a task that throws fails an inline stream, and the caller is not interrupted") {
    const HostStream stream = HostStream::make_inline();
    int ran = 0;
    stream.enqueue([] { throw std::runtime_error("the tape ran out"); });
    stream.enqueue([&ran] { ++ran; });
    CHECK(ran == 0);
    CHECK(contains(text_of([&] { stream.sync(); }), "the tape ran out"));
    CHECK(contains(text_of([&] { Host::throw_if_failed(stream.get()); }), "the tape ran out"));
    Host::clear_failure(stream.get());
    stream.enqueue([&ran] { ++ran; });
    CHECK(ran == 1);
}

TEST_CASE("an inline stream can be captured, and replays run on the caller") {
    const HostStream stream = HostStream::make_inline();
    int number = 1;
    const OwnedGraph graph = captured(stream, [&] {
        stream.enqueue([&number] { number *= 3; });
        stream.enqueue([&number] { number += 1; });
    });
    CHECK(number == 1);
    const OwnedExecutable executable = instantiated(graph);
    launch(executable, stream);
    CHECK(number == 4);
}

TEST_CASE("several threads may use one inline stream, and its tasks never run beside each other") {
    const HostStream stream = HostStream::make_inline();
    int count = 0;
    {
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 2000; ++i)
                    stream.enqueue([&count] { ++count; });
            });
        }
        for (std::thread& thread : threads)
            thread.join();
    }
    stream.sync();
    CHECK(count == 8000);
}

TEST_CASE("an inline stream takes no heap memory in the steady state") {
    const HostStream stream = HostStream::make_inline();
    const HostStream other;
    HostEvent event;
    int count = 0;
    const auto use = [&] {
        for (int i = 0; i < 1000; ++i) {
            stream.enqueue([&] { stream.enqueue([&count] { ++count; }); });
            event.record(stream);
            other.wait(event);
        }
        other.sync();
    };
    use();
    const HeapCount heap;
    use();
    CHECK(heap.allocations() == 0);
    CHECK(count == 2000);
}

TEST_CASE("an inline stream that goes waits for what another thread runs on it") {
    std::optional<HostStream> stream(HostStream::make_inline());
    const ScopedLatch latch;
    std::atomic<bool> done{false};
    std::thread worker([&, native = stream->ref(), handle = latch.handle()] {
        native.enqueue([&] {
            handle.pass();
            done = true;
        });
    });
    REQUIRE(latch.wait_until_reached());
    std::thread opener([handle = latch.handle()] {
        give_it_time();
        handle.open();
    });
    stream.reset();
    CHECK(done);
    opener.join();
    worker.join();
}

} // namespace backend_host_inline
