// More memory than there is: one sentence, nothing leaked, and everything goes on.
#include <string>

#include <sluice/memory/copy.hpp>

#include "support/alive.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/random_values.hpp"

namespace memory_out_of_memory {

using namespace sluice;
using namespace sluice::test;

// The sanitizers end a program that asks for too much, unless they are told not to: they call these.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace {

// No machine's: one that no rounding makes smaller, and those that it may.
constexpr std::size_t too_much[] = {std::size_t{1} << 60, ~std::size_t{0} - 100, ~std::size_t{0}};

template <class F>
void check_refused(F&& allocate, [[maybe_unused]] const char* host_kind, [[maybe_unused]] const char* call) {
    for (const std::size_t bytes : too_much) {
        const auto error = caught_error([&] { allocate(bytes); });
        REQUIRE(error);
#if defined(SLUICE_TEST_CUDA)
        CHECK_FALSE(error->name().empty());
        CHECK(error->call() == std::string(call) + " of " + std::to_string(bytes) + " bytes");
#else
        CHECK(error->what() == "out of memory: " + std::to_string(bytes) + " bytes of " + host_kind +
                                   " memory were asked for on the host");
#endif
    }
}

} // namespace

TEST_CASE_TEMPLATE("out of memory is an error with a number, and nothing else changes", B, TestBackend) {
    const BasicStream<B> stream;
    DeviceBuffer<char, B> device(1000);
    const Alive before = alive_now<B>();

    check_refused([&](std::size_t bytes) { device = DeviceBuffer<char, B>(bytes); }, "device", "cudaMalloc");
    check_refused([&](std::size_t bytes) { device = DeviceBuffer<char, B>(bytes, stream); }, "device",
                  "cudaMallocAsync");
    check_refused([&](std::size_t bytes) { const PinnedBuffer<char, B> pinned(bytes); }, "pinned",
                  "cudaHostAlloc");
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
