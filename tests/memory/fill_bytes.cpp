// Setting every byte of device memory.
#include <cstdint>
#include <vector>

#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/on_stream.hpp"

namespace memory_fill_bytes {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("every byte of the span is set, and no other", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<std::uint32_t, B> device(1000);
    std::vector<std::uint32_t> seen(1000);
    fill_bytes(stream, device, 0xFF);
    fill_bytes(stream, device.span().subspan(1, 998), 0x5A);
    copy_and_wait(stream, seen, device);
    CHECK(seen.front() == 0xFFFFFFFFu);
    CHECK(seen.back() == 0xFFFFFFFFu);
    for (std::size_t i = 1; i < 999; ++i)
        REQUIRE(seen[i] == 0x5A5A5A5Au);
}

TEST_CASE_TEMPLATE("a fill is made when the stream gets there", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> seen(1);
    DeviceBuffer<int, B> device(1);
    fill_bytes(stream.ref(), device, 1);
    stream.sync();
    const ScopedLatch latch;
    hold(stream, latch);
    fill_bytes(stream.ref(), device, 2);
    copy(stream, seen, device);
    CHECK_FALSE(stream.is_done());
    latch.open();
    stream.sync();
    CHECK(seen[0] == 0x02020202);
}

} // namespace memory_fill_bytes
