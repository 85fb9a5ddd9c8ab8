// More memory than there is: one sentence, nothing leaked, and everything goes on.
#include <doctest/doctest.h>

#include <string>

#include <sluice/memory/copy.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/error_text.hpp"
#include "support/random_values.hpp"

namespace memory_out_of_memory {

using namespace sluice;
using namespace sluice::test;

// The sanitizers end a program that asks for too much, unless they are told not to: they call these.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

constexpr std::size_t too_much = std::size_t{1} << 60; // no machine's, yet no overflow

template <class F>
void check_refused(F&& allocate, [[maybe_unused]] const char* host_kind, [[maybe_unused]] const char* call) {
    const auto error = caught_error(allocate);
    REQUIRE(error);
#if defined(SLUICE_TEST_CUDA)
    CHECK_FALSE(error->name().empty());
    CHECK(error->call() == std::string(call) + " of " + std::to_string(too_much) + " bytes");
#else
    CHECK(error->what() == "out of memory: " + std::to_string(too_much) + " bytes of " + host_kind +
                               " memory were asked for on the host");
#endif
}

} // namespace

TEST_CASE_TEMPLATE("out of memory is an error with a number, and nothing else changes", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<char, B> device(1000);
    const Alive before = alive_now<B>();

    check_refused([&] { device = DeviceBuffer<char, B>(too_much); }, "device", "cudaMalloc");
    check_refused([&] { device = DeviceBuffer<char, B>(too_much, stream); }, "device", "cudaMallocAsync");
    check_refused([&] { const PinnedBuffer<char, B> pinned(too_much); }, "pinned", "cudaHostAlloc");
    CHECK(alive_now<B>() == before);
    B::check_launches(); // no error is left behind to be blamed on later work

    // The buffer that was to be replaced is as it was, and so is the stream.
    REQUIRE(device.size() == 1000);
    const auto values = random_values<char>(1000, 1);
    std::vector<char> seen(1000);
    copy_and_wait(stream, device, values);
    copy_and_wait(stream, seen, device);
    CHECK(same_bytes(seen, values));
    const DeviceBuffer<char, B> more(1000);
    CHECK(more.size() == 1000);
}

} // namespace memory_out_of_memory
