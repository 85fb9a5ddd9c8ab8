// Which stream a buffer is freed on, and when: seen through a backend that notes it.
#include <memory>
#include <utility>
#include <vector>

#include <sluice/memory/buffer.hpp>

#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/on_stream.hpp"

namespace memory_host_stream_ordered {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Noting : Host {
    /// The streams that memory was freed on; null for memory freed without one.
    static inline std::vector<NativeStream> freed_on;

    static void free_device(void* memory) noexcept {
        freed_on.push_back(nullptr);
        Host::free_device(memory);
    }
    static void free_device(void* memory, NativeStream stream) noexcept {
        freed_on.push_back(stream);
        Host::free_device(memory, stream);
    }
};

using Freed = std::vector<host::Queue*>;
using Buffer = DeviceBuffer<int, Noting>;

} // namespace

TEST_CASE("a buffer is freed on the stream that it was allocated on, wherever it was moved") {
    const BasicStream<Noting> first;
    const BasicStream<Noting> second;
    Noting::freed_on.clear();
    {
        Buffer a(10, first);
        Buffer b(10, second);
        a = std::move(b);
        CHECK(Noting::freed_on == Freed{first.get()});
        Buffer c{std::move(a)};
        Buffer plain(10);
        c = std::move(plain);
        CHECK(Noting::freed_on == Freed{first.get(), second.get()});
    }
    CHECK(Noting::freed_on == Freed{first.get(), second.get(), nullptr});

    Noting::freed_on.clear();
    {
        Buffer plain(10);
        plain = Buffer(10, second);
    }
    CHECK(Noting::freed_on == Freed{nullptr, second.get()});
}

TEST_CASE(
    "memory is not freed while its stream holds work that may use it, and the host does not wait for that") {
    const HostStream stream;
    const Alive before = alive_now<Host>();
    DeviceBuffer<int, Host> buffer(10, stream);
    const int* const memory = buffer.data();
    const ScopedLatch latch;
    hold(stream, latch);
    buffer = DeviceBuffer<int, Host>{}; // comes back at once
    CHECK_FALSE(latch.timed_out());
    CHECK(alive_now<Host>() == before);
    CHECK(Host::is_device_memory(memory));
    latch.open();
    stream.sync();
    CHECK_FALSE(Host::is_device_memory(memory));
}

TEST_CASE("a task may be the last that holds memory of its stream, or of a stream that waits for it") {
    const Alive before = alive_now<Host>();
    {
        const HostStream stream;
        const HostStream waiting;
        HostEvent event;
        const ScopedLatch latch;
        hold(stream, latch);
        auto own = std::make_shared<DeviceBuffer<int, Host>>(10, stream);
        auto others = std::make_shared<DeviceBuffer<int, Host>>(10, waiting);
        const int* const memory = own->data();
        int* const first = own->data();
        stream.enqueue([own = std::move(own), others = std::move(others)]() mutable {
            own.reset();
            others.reset();
        });
        bool still_there = false;
        stream.enqueue([&, first] { // enqueued before the memory was freed
            still_there = Host::is_device_memory(memory);
            *first = 1;
        });
        event.record(stream);
        waiting.wait(event);
        latch.open();
        waiting.sync();
        stream.sync();
        CHECK(still_there);
        CHECK_FALSE(Host::is_device_memory(memory));
    }
    CHECK(alive_now<Host>() == before);
}

} // namespace memory_host_stream_ordered
