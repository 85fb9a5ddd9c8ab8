// The calling thread's current device, and that it comes back.
#include <string>
#include <thread>

#include <sluice/backend/device.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_device_guard {

using namespace sluice;
using namespace sluice::test;

TEST_CASE_TEMPLATE("there is a device, and it has a name", B, TestBackend) {
    CHECK(B::device_count() >= 1);
    const int device = B::current_device();
    CHECK(device >= 0);
    CHECK(device < B::device_count());
    CHECK_FALSE(B::device_name(device).empty());
}

TEST_CASE_TEMPLATE("a guard for the current device changes nothing", B, TestBackend) {
    const int before = B::current_device();
    {
        const DeviceGuard<B> guard(before);
        CHECK(B::current_device() == before);
    }
    CHECK(B::current_device() == before);
}

TEST_CASE_TEMPLATE("a device that is not there is refused", B, TestBackend) {
    const int before = B::current_device();
    const int count = B::device_count();
    for (const int wrong : {-1, count, count + 100}) {
        const auto error = caught_error([&] { B::set_device(wrong); });
        REQUIRE(error);
#if defined(SLUICE_TEST_CUDA)
        CHECK(error->name() == "cudaErrorInvalidDevice");
        CHECK(contains(error->call(), "cudaSetDevice("));
#else
        CHECK(error->what() == "Host::set_device(" + std::to_string(wrong) +
                                   "): " + detail::there_are(count, "host device") + ", numbered from 0");
#endif
        CHECK_THROWS_AS([&] { const DeviceGuard<B> guard{wrong}; }(), Error);
        CHECK_THROWS_AS((void)B::device_name(wrong), Error);
        CHECK(B::current_device() == before);
    }
}

} // namespace backend_device_guard
