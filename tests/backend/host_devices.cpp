// Several devices, of the Host backend: CMakeLists.txt runs this program with SLUICE_HOST_DEVICES=3, and its
// test case "count" with other values.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <sluice/backend/device.hpp>
#include <sluice/backend/stream.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/latch.hpp"

namespace backend_host_devices {

using namespace sluice;
using namespace sluice::test;

TEST_CASE("count") {
    const char* expected = std::getenv("SLUICE_TEST_EXPECTED_DEVICES");
    REQUIRE(expected != nullptr);
    if (std::string(expected) == "refused") {
        for (int time = 0; time < 2; ++time) {
            CHECK(text_of([] { (void)Host::device_count(); }) ==
                  "SLUICE_HOST_DEVICES is \"" + std::string(std::getenv("SLUICE_HOST_DEVICES")) +
                      "\"; expected a whole number from 1 to 64");
        }
        return;
    }
    CHECK(Host::device_count() == std::atoi(expected));
}

TEST_CASE("a guard sets a device for a scope") {
    CHECK(Host::current_device() == 0);
    {
        const DeviceGuard<Host> outer(2);
        CHECK(Host::current_device() == 2);
        {
            const DeviceGuard<Host> inner(1);
            CHECK(Host::current_device() == 1);
        }
        CHECK(Host::current_device() == 2);
    }
    CHECK(Host::current_device() == 0);
}

TEST_CASE("a guard that an exception leaves restores the device too") {
    try {
        const DeviceGuard<Host> guard(1);
        throw std::runtime_error("on the way out");
    } catch (const std::runtime_error&) {
    }
    CHECK(Host::current_device() == 0);
}

TEST_CASE("each thread has a current device of its own") {
    const DeviceGuard<Host> guard(2);
    int first = -1;
    std::thread([&first] {
        first = Host::current_device();
        Host::set_device(1);
    }).join();
    CHECK(first == 0);
    CHECK(Host::current_device() == 2);
}

TEST_CASE("a stream belongs to the device that was current when it was made") {
    const HostStream here;
    CHECK(here.device() == 0);
    const HostStream there = [] {
        const DeviceGuard<Host> guard(2);
        return HostStream{};
    }();
    CHECK(there.device() == 2);
    CHECK(there.ref().device() == 2);
    CHECK(Host::current_device() == 0);
}

TEST_CASE("events are recorded on streams of their own device, and waited for on any") {
    const HostStream here;
    const DeviceGuard<Host> guard(1);
    const HostStream there;
    HostEvent event;
    CHECK(
        text_of([&] { event.record(here); }) ==
        "record: the event belongs to host device 1 and the stream to host device 0; both must belong to the "
        "same");
    CHECK(event.is_done()); // nothing was recorded

    event.record(there);
    here.wait(event);
    here.sync();
    CHECK(event.is_done());
}

} // namespace backend_host_devices
