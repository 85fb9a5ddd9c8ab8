// Contract 10 for memory: a buffer is filled by streams of its own device. Needs two devices.
#include <optional>
#include <string>

#include <sluice/backend/device.hpp>
#include <sluice/memory.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace memory_devices {

using namespace sluice;
using namespace sluice::test;
using B = TestBackend;

TEST_CASE("Contract 10: a buffer knows its device, and is not filled by a stream of another one") {
    if (B::device_count() < 2) {
        MESSAGE("skipped: needs two devices, and there are " << B::device_count());
        return;
    }
    const BasicStream<B> here;
    std::optional<DeviceGuard<B>> guard(std::in_place, 1);
    const BasicStream<B> there;
    DeviceBuffer<int, B> theirs(4);
    guard.reset();
    DeviceBuffer<int, B> ours(4);
    CHECK(theirs.device() == 1);
    CHECK(ours.device() == 0);
    // In a stream's order memory comes from the stream's device.
    CHECK(DeviceBuffer<int, B>(4, there).device() == 1);
    CHECK(DeviceBuffer<int, B>{}.device() == -1);
    CHECK(text_of([&] { fill(there, ours, 7); }) ==
          "fill: the stream belongs to device 1, the memory to device 0; both must be the same device's");
    CHECK(
        text_of([&] { fill_bytes(here, theirs, 7); }) ==
        "fill_bytes: the stream belongs to device 0, the memory to device 1; both must be the same device's");
    fill(here, ours, 7);
    fill(there, theirs, 8);
    there.sync();
    // Copies go between devices.
    copy(here, ours, theirs);
    int values[4] = {};
    copy_and_wait(here, values, ours);
    CHECK(values[3] == 8);
    // Nothing to fill is no memory of any device.
    DeviceBuffer<int, B> none;
    fill(there, none, 1);
}

} // namespace memory_devices
