// Copies from and to ordinary host memory.
#include <array>
#include <span>
#include <vector>

#include <sluice/memory/copy.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/random_values.hpp"

namespace memory_copy_and_wait {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("vectors, spans and arrays go to the device and come back", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<int, B> device(5);

    const auto values = random_values<int>(5, 1);
    std::vector<int> seen(5, -1);
    copy_and_wait(stream, device, values);
    copy_and_wait(stream, seen, device);
    CHECK(seen == values);

    const std::array<int, 5> array{1, 2, 3, 4, 5};
    std::array<int, 5> array_seen{};
    copy_and_wait(stream, device, array);
    copy_and_wait(stream, array_seen, device);
    CHECK(array_seen == array);

    const int plain[5] = {6, 7, 8, 9, 10};
    int plain_seen[5] = {};
    copy_and_wait(stream, device, plain);
    copy_and_wait(stream, plain_seen, device);
    CHECK(plain_seen[0] == 6);
    CHECK(plain_seen[4] == 10);

    copy_and_wait(stream.ref(), device.span().first(2), std::span(values).last(2));
    copy_and_wait(stream.ref(), std::span(seen).first(2), device.span().first(2));
    CHECK(seen[0] == values[3]);
    CHECK(seen[1] == values[4]);
    CHECK(seen[2] == values[2]); // the rest is as it was
}

TEST_CASE_TEMPLATE("the source may go as soon as the copy returns", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<int, B> device(1000);
    {
        std::vector<int> gone(1000, 77);
        copy_and_wait(stream, device, gone);
        gone.assign(1000, 0);
    }
    CHECK(stream.is_done());
    std::vector<int> seen(1000);
    copy_and_wait(stream, seen, device);
    CHECK(seen == std::vector<int>(1000, 77));
}

TEST_CASE_TEMPLATE("pinned and device memory will do as well", B, TestBackend) {
    const BasicStream<B> stream;
    PinnedBuffer<int, B> pinned(3);
    DeviceBuffer<int, B> device(3);
    DeviceBuffer<int, B> other(3);
    for (int i = 0; i < 3; ++i)
        pinned[static_cast<std::size_t>(i)] = i + 40;
    copy_and_wait(stream, device, pinned);
    copy_and_wait(stream, other, device);
    pinned[1] = 0;
    copy_and_wait(stream, pinned, other);
    CHECK(pinned[1] == 41);
}

TEST_CASE_TEMPLATE("it comes after what the stream holds already", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<unsigned char, B> device(1 << 20);
    std::vector<unsigned char> seen(1 << 20);
    for (unsigned char value = 1; value < 4; ++value) {
        fill_bytes(stream, device, value);
        copy_and_wait(stream, seen, device);
        CHECK(seen == std::vector<unsigned char>(1 << 20, value));
    }
}

} // namespace memory_copy_and_wait
