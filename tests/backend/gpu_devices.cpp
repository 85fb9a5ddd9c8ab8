// Several devices, of a machine that has them.
#include <sluice/backend/device.hpp>
#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_gpu_devices {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("objects belong to the device that was current when they were made") {
    if (Cuda::device_count() < 2) {
        MESSAGE("this machine has one device: nothing to test here");
        return;
    }
    REQUIRE(Cuda::current_device() == 0);
    const CudaStream here;
    const CudaStream there = [] {
        const DeviceGuard<Cuda> guard(1);
        return CudaStream{};
    }();
    CHECK(Cuda::current_device() == 0);
    CHECK(here.device() == 0);
    CHECK(there.device() == 1);
    CHECK(Cuda::current_device() == 0); // asking changes nothing

    CudaEvent event; // of device 0
    const auto error = caught_error([&] { event.record(there); });
    REQUIRE(error);
    CHECK(error->name() == "cudaErrorInvalidResourceHandle");
    event.record(here);
    there.wait(event);
    there.sync();
}

TEST_CASE("a stream's device is known on a machine with one device too") {
    const CudaStream stream;
    CHECK(stream.device() == Cuda::current_device());
}

} // namespace backend_gpu_devices
