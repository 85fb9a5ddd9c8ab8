// Many allocations take each as long as few: what the Host backend and the library know of them is found by a search.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <random>
#include <vector>

#include <sluice/backend/detail/memory_blocks.hpp>
#include <sluice/memory/buffer.hpp>

#include "support/doctest.hpp"

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

TEST_CASE("blocks of memory are found as in a std::map") {
    // Of up to 64 bytes, 64 bytes apart, so that some touch each other and some have a gap behind.
    std::map<std::uintptr_t, std::size_t> expected;
    detail::MemoryBlocks blocks;
    std::mt19937_64 random(1);
    const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
    std::size_t wrong = 0, found = 0;
    for (int turn = 0; turn < 100'000; ++turn) {
        const std::uintptr_t begin = 4096 + random() % 1000 * 64;
        const std::size_t bytes = random() % 65;
        const bool is_special = random() % 2 == 0;
        if (const auto known = expected.find(begin); known == expected.end()) {
            blocks.add(at(begin), {.bytes = bytes, .number = begin, .is_special = is_special});
            expected[begin] = bytes == 0 ? 1 : bytes;
        } else if (random() % 2 == 0) {
            const auto removed = blocks.remove(at(begin));
            wrong += removed.bytes != known->second || removed.number != begin ? 1u : 0u;
            expected.erase(known);
            wrong += blocks.remove(at(begin)).bytes != 0 ? 1u : 0u;
        }
        const std::uintptr_t asked = 4000 + random() % (1000 * 64 + 300);
        auto next = expected.upper_bound(asked);
        const bool is_in = next != expected.begin() && (--next, asked - next->first < next->second);
        const auto* const block = blocks.find(at(asked));
        wrong += is_in != (block != nullptr) || (is_in && block->number != next->first) ? 1u : 0u;
        found += is_in ? 1u : 0u;
    }
    CHECK(wrong == 0);
    CHECK(found > 10'000);
    for (const auto& [begin, bytes] : expected)
        (void)blocks.remove(at(begin));
}

} // namespace memory_many_blocks
