// Copies in stream order, in each direction that there is.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/on_stream.hpp"
#include "support/random_values.hpp"

namespace memory_copy {

using namespace sluice;
using namespace sluice::test;

namespace {

struct Triple {
    std::uint8_t value[3];
};

/// Up, across, and down again, each destination poisoned first.
template <class T, class B>
void check_round_trip(std::size_t count, std::uint32_t seed) {
    CAPTURE(count);
    const BasicStream<B> stream;
    const auto values = random_values<T>(count, seed);
    PinnedBuffer<T, B> up(count);
    PinnedBuffer<T, B> down(count);
    DeviceBuffer<T, B> first(count);
    DeviceBuffer<T, B> second(count);
    std::copy(values.begin(), values.end(), up.begin());
    const auto poison = random_values<T>(count, seed + 1);
    std::copy(poison.begin(), poison.end(), down.begin());
    fill_bytes(stream, first, 0xAB);
    fill_bytes(stream, second, 0xCD);

    copy(stream, first, up);
    copy(stream, second, first);
    copy(stream, down, second);
    stream.sync();
    CHECK(same_bytes(down, values));
    CHECK(same_bytes(up, values)); // the source is as it was
}

} // namespace

TEST_CASE("a copy's kind says where both of its sides are") {
    for (const detail::MemoryKind host : {detail::MemoryKind::host, detail::MemoryKind::pinned}) {
        CHECK(detail::kind_between(detail::MemoryKind::device, host) == CopyKind::host_to_device);
        CHECK(detail::kind_between(host, detail::MemoryKind::device) == CopyKind::device_to_host);
        CHECK(detail::kind_between(host, host) == CopyKind::host_to_host);
    }
    CHECK(detail::kind_between(detail::MemoryKind::device, detail::MemoryKind::device) ==
          CopyKind::device_to_device);
}

TEST_CASE_TEMPLATE("what is copied up, across and down comes back", B, TestBackend) {
    for (const std::size_t count : {1u, 2u, 3u, 255u, 256u, 257u, 4099u, 1u << 20}) {
        check_round_trip<float, B>(count, 1);
        check_round_trip<std::uint8_t, B>(count, 2);
        check_round_trip<Triple, B>(count, 3);
    }
}

TEST_CASE_TEMPLATE("nothing is copied from and to nothing", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> pinned;
    DeviceBuffer<int, B> device(0);
    copy(stream, device, pinned);
    copy(stream, pinned, device);
    copy_and_wait(stream, device, std::vector<int>{});
    fill_bytes(stream, device, 1);
    stream.sync();
    CHECK(stream.is_done());
}

TEST_CASE_TEMPLATE("spans copy a part, and leave the rest", B, TestBackend) {
    const BasicStream<B> stream;
    const auto values = random_values<std::uint32_t>(16, 5);
    PinnedBuffer<std::uint32_t, B> pinned(16);
    PinnedBuffer<std::uint32_t, B> back(16);
    DeviceBuffer<std::uint32_t, B> device(16);
    std::copy(values.begin(), values.end(), pinned.begin());
    fill_bytes(stream, device, 0x11);

    copy(stream, device.span().subspan(4, 8), pinned.span().first(8));
    copy(stream, back, device);
    stream.sync();
    for (std::size_t i = 0; i < 16; ++i)
        CHECK(back[i] == (i < 4 || i >= 12 ? 0x11111111u : values[i - 4]));
}

TEST_CASE_TEMPLATE("sources may be constant, and streams external", B, TestBackend) {
    const BasicStream<B> stream;
    const BasicStreamRef<B> external = stream;
    PinnedBuffer<int, B> up(3);
    PinnedBuffer<int, B> down(3);
    DeviceBuffer<int, B> device(3);
    std::fill(up.begin(), up.end(), 8);
    std::fill(down.begin(), down.end(), 0);
    const PinnedBuffer<int, B>& constant_pinned = up;
    const DeviceBuffer<int, B>& constant_device = device;

    copy(external, device, constant_pinned);
    copy(external, down, constant_device);
    external.sync();
    CHECK(down[2] == 8);

    const DeviceSpan<const int, B> view = constant_device;
    const PinnedSpan<int, B> to = down; // the elements are not constant, though the span is
    fill_bytes(external, device, 0);
    copy(external, to, view);
    external.sync();
    CHECK(down[2] == 0);
}

TEST_CASE_TEMPLATE("a copy is made when the stream gets there", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> up(1);
    PinnedBuffer<int, B> down(1);
    DeviceBuffer<int, B> device(1);
    up[0] = 1;
    down[0] = 0;
    const ScopedLatch latch;
    hold(stream, latch);
    run_on(stream, [&up] { up[0] = 2; });
    copy(stream, device, up);
    copy(stream, down, device);
    CHECK_FALSE(stream.is_done()); // the host did not wait
    CHECK(*down.data() == 0);      // not down[0], which a checked backend refuses
    latch.open();
    stream.sync();
    CHECK(down[0] == 2);
}

TEST_CASE_TEMPLATE("pinned memory is copied to pinned memory when the stream gets there", B, TestBackend) {
    const BasicStream<B> stream;
    const auto values = random_values<std::uint32_t>(4099, 8);
    PinnedBuffer<std::uint32_t, B> from(values.size());
    PinnedBuffer<std::uint32_t, B> to(values.size());
    PinnedBuffer<std::uint32_t, B> back(values.size());
    DeviceBuffer<std::uint32_t, B> device(values.size());
    std::fill(from.begin(), from.end(), 1u);
    std::fill(to.begin(), to.end(), 2u);
    const ScopedLatch latch;
    hold(stream, latch);
    run_on(stream, [&] { std::copy(values.begin(), values.end(), from.begin()); });
    copy(stream, device, from);
    copy(stream, from, device); // between copies that the device makes
    copy(stream, to, from);
    copy(stream, device, to);
    copy(stream, back, device);
    CHECK_FALSE(stream.is_done()); // the host did not wait
    CHECK(*to.data() == 2u);       // not to[0], which a checked backend refuses
    latch.open();
    stream.sync();
    CHECK(same_bytes(to, values));
    CHECK(same_bytes(back, values));

    copy(stream, to.first(1), back.subspan(7, 1));
    stream.sync();
    CHECK(to[0] == values[7]);
    CHECK(to[1] == values[1]);
    CHECK(text_of([&] { copy(stream, to, from.first(3)); }) ==
          "copy: the source holds 3 elements and the destination 4099; both must hold the same number");
}

TEST_CASE_TEMPLATE("lengths that differ are refused, and nothing is copied", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> pinned(5);
    PinnedBuffer<int, B> back(6);
    DeviceBuffer<int, B> device(6);
    std::fill(pinned.begin(), pinned.end(), 3);
    fill_bytes(stream, device, 0);
    CHECK(text_of([&] { copy(stream, device, pinned); }) ==
          "copy: the source holds 5 elements and the destination 6; both must hold the same number");
    CHECK(text_of([&] { copy(stream, pinned, device); }) ==
          "copy: the source holds 6 elements and the destination 5; both must hold the same number");
    std::vector<int> host(7);
    CHECK_FALSE(text_of([&] { copy_and_wait(stream, device, host); }).empty());
    CHECK_FALSE(text_of([&] { copy_and_wait(stream, host, device); }).empty());
    CHECK_FALSE(text_of([&] { copy(stream, device, pinned.span().first(0)); }).empty());

    copy(stream, back, device);
    stream.sync();
    CHECK(back[0] == 0);
}

TEST_CASE_TEMPLATE("sides that overlap are refused, and the same elements are not", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<int, B> device(8);
    PinnedBuffer<int, B> pinned(8);
    fill_bytes(stream, device, 1);
    stream.sync();
    const auto text = [&](auto&& to, auto&& from) { return text_of([&] { copy(stream, to, from); }); };
    CHECK(contains(text(device.first(7), device.last(7)), "copy: the source and the destination overlap"));
    CHECK(contains(text(device.last(5), device.first(5)), "overlap"));
    CHECK(contains(text(pinned.first(7), pinned.last(7)), "overlap"));
    CHECK(contains(text_of([&] { copy_and_wait(stream, device.first(7), device.last(7)); }), "overlap"));
    copy(stream, device.first(4), device.last(4));
    copy(stream, device.last(4), device.first(4));
    copy(stream, device, device);
    copy(stream, pinned.first(0), pinned.last(0));
    stream.sync();
}

TEST_CASE("pieces of memory overlap where they have a byte in common") {
    using detail::overlap, detail::overlap_in_part;
    const std::array<std::byte, 16> memory{};
    const auto* const at = memory.data();
    CHECK(overlap({at, 8}, {at + 7, 1}));
    CHECK(overlap({at + 7, 1}, {at, 8}));
    CHECK_FALSE(overlap({at, 8}, {at + 8, 8}));
    CHECK_FALSE(overlap({at + 8, 2, 4}, {at, 2, 4}));
    CHECK(overlap({at, 2, 4}, {at + 7, 9}));
    CHECK_FALSE(overlap({at, 0}, {at, 8}));
    CHECK_FALSE(overlap({at, 8}, {at + 4, 0}));
    CHECK(overlap({at, ~std::size_t{0}, 8}, {at + 8, 1})); // more bytes than there are numbers for
    CHECK(overlap_in_part({at, 4, 4}, {at + 4, 3, 4}));
    CHECK(overlap_in_part({at, 4, 4}, {at, 2, 8})); // of other elements
    CHECK_FALSE(overlap_in_part({at, 4, 4}, {at, 3, 4}));
    CHECK_FALSE(overlap_in_part({at, 2, 4}, {at + 8, 2, 4}));
}

} // namespace memory_copy
