// Many allocations take each as long as few: what the Host backend and the library know of them is found by a search.
#include <ctime>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/memory/buffer.hpp>

namespace memory_many_blocks {

using namespace sluice;

namespace {

// Seconds of this thread, of the quickest of three times, to free as many buffers, the first first.
double seconds_to_free(std::size_t count) {
    const auto now = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    double least = 1e9;
    for (int times = 0; times < 3; ++times) {
        std::vector<DeviceBuffer<char, Host>> buffers;
        for (std::size_t i = 0; i < count; ++i)
            buffers.emplace_back(std::size_t{16});
        const double begin = now();
        for (auto& buffer : buffers)
            buffer = DeviceBuffer<char, Host>();
        const double seconds = now() - begin;
        least = seconds < least ? seconds : least;
    }
    return least;
}

} // namespace

TEST_CASE("sixteen times as many allocations are freed in far less than 256 times the time") {
    const double few = seconds_to_free(1000), many = seconds_to_free(16000);
    CAPTURE(few);
    CAPTURE(many);
    CHECK(many < 64 * few);
}

} // namespace memory_many_blocks
