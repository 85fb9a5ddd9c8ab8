// How much device memory is in use.
#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include <sluice/memory/buffer.hpp>

#include "support/backend.hpp"

namespace backend_memory_use {

using namespace sluice;
using Backend = test::TestBackend;

static_assert(MemoryUseBackend<Backend>);

// More than other programs on a GPU may free in the meantime is too much to ask for; the Host backend counts to the byte.
constexpr std::size_t size = std::size_t{256} << 20;

TEST_CASE("device memory in use grows by what is allocated, and falls again") {
    const bool exact = std::string(Backend::name) == "host";
    const std::size_t bytes = exact ? 1000 : size;
    { const DeviceBuffer<std::byte, Backend> first(1); } // whatever the device takes for its first allocation
    const std::size_t before = Backend::device_memory_in_use();
    {
        const DeviceBuffer<std::byte, Backend> buffer(bytes);
        const std::size_t during = Backend::device_memory_in_use();
        if (exact)
            CHECK(during == before + bytes);
        else
            CHECK(during > before + bytes / 2);
        const PinnedBuffer<std::byte, Backend> pinned(bytes); // is not the device's
        if (exact)
            CHECK(Backend::device_memory_in_use() == during);
    }
    if (exact)
        CHECK(Backend::device_memory_in_use() == before);
    else
        CHECK(Backend::device_memory_in_use() < before + bytes / 2);
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
