// Device memory that is allocated and freed in a stream's order.
#include <algorithm>
#include <optional>
#include <utility>

#include <sluice/memory/copy.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/on_stream.hpp"
#include "support/random_values.hpp"

namespace memory_stream_ordered {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("work of its stream may use a buffer at once", B, TestBackend) {
    const BasicStream<B> stream;
    const auto values = random_values<int>(1000, 1);
    PinnedBuffer<int, B> up(1000);
    PinnedBuffer<int, B> down(1000);
    std::copy(values.begin(), values.end(), up.begin());
    std::fill(down.begin(), down.end(), 0);
    const Alive before = alive_now<B>();
    {
        DeviceBuffer<int, B> device(1000, stream);
        CHECK(alive_now<B>().device_allocations == before.device_allocations + 1);
        copy(stream, device, up);
        copy(stream, down, device);
    }
    CHECK(alive_now<B>() == before);
    stream.sync();
    CHECK(same_bytes(down, values));
}

TEST_CASE_TEMPLATE("a buffer that is destroyed is freed after the work that uses it", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<unsigned char, B> down(1 << 16);
    std::fill(down.begin(), down.end(), static_cast<unsigned char>(0));
    for (int round = 0; round < 50; ++round) {
        const auto value = static_cast<unsigned char>(round + 1);
        {
            DeviceBuffer<unsigned char, B> device(1 << 16, stream);
            fill_bytes(stream, device, value);
            copy(stream, down, device);
        }
        // The next one is likely to get the same memory.
        DeviceBuffer<unsigned char, B> next(1 << 16, stream);
        fill_bytes(stream, next, 0xEE);
        stream.sync();
        REQUIRE(down[0] == value);
        REQUIRE(down[(1 << 16) - 1] == value);
    }
}

TEST_CASE_TEMPLATE("a buffer stays with its stream when it is moved", B, TestBackend) {
    const BasicStream<B> first;
    const BasicStream<B> second;
    const Alive before = alive_now<B>();
    {
        DeviceBuffer<int, B> a(10, first);
        DeviceBuffer<int, B> b(20, second);
        a = std::move(b);
        CHECK(a.size() == 20);
        CHECK(alive_now<B>().device_allocations == before.device_allocations + 1);

        DeviceBuffer<int, B> plain(30);
        plain = std::move(a);
        CHECK(plain.size() == 20);
        plain = DeviceBuffer<int, B>(5);
        CHECK(alive_now<B>().device_allocations == before.device_allocations + 1);
        const DeviceBuffer<int, B> none(0, first);
        CHECK(none.data() == nullptr);
    }
    CHECK(alive_now<B>() == before);
}

} // namespace memory_stream_ordered
