// How much device memory is in use.
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include <sluice/memory/buffer.hpp>

#include "support/backend.hpp"
#include "support/doctest.hpp"

namespace backend_memory_use {

using namespace sluice;
using Backend = test::TestBackend;

static_assert(MemoryUseBackend<Backend>);

constexpr std::size_t size = std::size_t{256} << 20;

bool grows_and_falls() {
    const std::size_t before = Backend::device_memory_in_use();
    std::size_t during = 0;
    {
        const DeviceBuffer<std::byte, Backend> buffer(size);
        during = Backend::device_memory_in_use();
    }
    return during > before + size / 2 && Backend::device_memory_in_use() < before + size / 2;
}

TEST_CASE("device memory in use grows by what is allocated, and falls again") {
    { const DeviceBuffer<std::byte, Backend> first(1); } // whatever the device takes for its first allocation
    if (std::string(Backend::name) != "host") {
        // A GPU's is that of all programs on it, which may allocate or free as much in the meantime, but not each time.
        bool right = false;
        for (int attempt = 0; attempt < 50 && !right; ++attempt) {
            right = grows_and_falls();
            if (!right)
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        CHECK(right);
        return;
    }
    const std::size_t before = Backend::device_memory_in_use();
    {
        const DeviceBuffer<std::byte, Backend> buffer(1000);
        CHECK(Backend::device_memory_in_use() == before + 1000);
        const PinnedBuffer<std::byte, Backend> pinned(1000); // is not the device's
        CHECK(Backend::device_memory_in_use() == before + 1000);
        void* const nothing = Backend::allocate_device(0);
        CHECK(Backend::device_memory_in_use() == before + 1001); // of no bytes, it counts as one
        Backend::free_device(nothing);
        CHECK(Backend::device_memory_in_use() == before + 1000);
    }
    CHECK(Backend::device_memory_in_use() == before);
}

TEST_CASE("memory that is freed in stream order is in use until the stream gets there") {
    if (std::string(Backend::name) != "host")
        return; // a pool keeps it
    const std::size_t before = Backend::device_memory_in_use();
    const BasicStream<Backend> stream;
    {
        const DeviceBuffer<std::byte, Backend> buffer(500, stream);
        CHECK(Backend::device_memory_in_use() == before + 500);
    }
    stream.sync();
    CHECK(Backend::device_memory_in_use() == before);
}

} // namespace backend_memory_use
