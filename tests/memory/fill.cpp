// Setting every element of device memory.
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/on_stream.hpp"

namespace memory_fill {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Colour {
    std::uint8_t red, green, blue, alpha;
    friend bool operator==(const Colour&, const Colour&) = default;
};

enum class Kind : std::uint16_t { none = 0x1234, some = 0xBEEF };

/// All elements, then all but the first and the last.
template <class T, class B>
void check_fill(T outer, T inner) {
    const BasicStream<B> stream;
    for (const std::size_t count : {3u, 4u, 5u, 1000u, 4099u}) {
        CAPTURE(count);
        DeviceBuffer<T, B> device(count);
        PinnedBuffer<T, B> seen(count);
        fill(stream, device, outer);
        fill(stream.ref(), device.subspan(1, count - 2), inner);
        copy(stream, seen, device);
        stream.sync();
        CHECK(seen[0] == outer);
        CHECK(seen[count - 1] == outer);
        bool all = true;
        for (std::size_t i = 1; i + 1 < count; ++i)
            all = all && seen[i] == inner;
        CHECK(all);
    }
}

} // namespace

TEST_CASE_TEMPLATE("every element of the span is set, and no other", B, TestBackend) {
    check_fill<std::uint8_t, B>(7, 250);
    check_fill<bool, B>(false, true);
    check_fill<std::int16_t, B>(-2, 0x1234);
    check_fill<Kind, B>(Kind::none, Kind::some);
    check_fill<float, B>(-0.5F, 3.25F);
    check_fill<std::int32_t, B>(-7, 0x01020304);
    check_fill<Colour, B>({1, 2, 3, 4}, {5, 6, 7, 8});
}

TEST_CASE_TEMPLATE("the value converts to the elements' type", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<float, B> device(2);
    std::vector<float> seen(2);
    fill(stream, device, 1);
    copy_and_wait(stream, seen, device);
    CHECK(seen == std::vector<float>{1.0F, 1.0F});
    fill(stream, DeviceSpan<float, B>{}, 1);
    stream.sync();
}

TEST_CASE_TEMPLATE("a typed fill is made when the stream gets there", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> seen(1);
    DeviceBuffer<int, B> device(1);
    fill(stream, device, 1);
    stream.sync();
    const ScopedLatch latch;
    hold(stream, latch);
    fill(stream, device, 1234567);
    copy(stream, seen, device);
    CHECK_FALSE(stream.is_done());
    latch.open();
    stream.sync();
    CHECK(seen[0] == 1234567);
}

TEST_CASE_TEMPLATE("a thread that is new to the device may fill", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<std::uint16_t, B> device(5);
    std::string text;
    std::thread([&] { text = text_of([&] { fill(stream, device, std::uint16_t{513}); }); }).join();
    CHECK(text.empty());
    std::vector<std::uint16_t> seen(5);
    copy_and_wait(stream, seen, device);
    CHECK(seen == std::vector<std::uint16_t>(5, 513));
}

TEST_CASE_TEMPLATE("memory that does not begin at a multiple of its elements is refused", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<std::uint8_t, B> device(64);
    const DeviceSpan<Colour, B> between(reinterpret_cast<Colour*>(device.data() + 2), 4);
    CHECK(text_of([&] { fill(stream, between, Colour{}); }) ==
          "fill: the memory begins at an address that is no multiple of its elements' 4 bytes");
}

} // namespace memory_fill
