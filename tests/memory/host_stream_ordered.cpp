// Which stream a buffer is freed on, and when: seen through a backend that notes it.
#include <doctest/doctest.h>

#include <thread>
#include <utility>
#include <vector>

#include <sluice/memory/buffer.hpp>

#include "support/alive.hpp"
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
        CHECK(Noting::freed_on == Freed{first.native()});
        Buffer c{std::move(a)};
        Buffer plain(10);
        c = std::move(plain);
        CHECK(Noting::freed_on == Freed{first.native(), second.native()});
    }
    CHECK(Noting::freed_on == Freed{first.native(), second.native(), nullptr});

    Noting::freed_on.clear();
    {
        Buffer plain(10);
        plain = Buffer(10, second);
    }
    CHECK(Noting::freed_on == Freed{nullptr, second.native()});
}

TEST_CASE("memory is not freed while its stream holds work that may use it") {
    const HostStream stream;
    const Alive before = alive_now<Host>();
    DeviceBuffer<int, Host> buffer(10, stream);
    const ScopedLatch latch;
    hold(stream, latch);
    std::thread destroyer([&buffer] { buffer = DeviceBuffer<int, Host>{}; });
    give_it_time();
    CHECK(alive_now<Host>().device_allocations == before.device_allocations + 1);
    latch.open();
    destroyer.join();
    stream.synchronize();
    CHECK(alive_now<Host>() == before);
}

} // namespace memory_host_stream_ordered
