// Spans as arguments of kernels.
#include <cstddef>
#include <vector>

#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"

using namespace sluice;

namespace {

__global__ void add(DeviceSpan<const int, Cuda> from, DeviceSpan<int, Cuda> to) {
    const DeviceSpan<const int, Cuda> seen = to; // converts there too
    const std::size_t i = threadIdx.x;
    if (!from.empty() && i < from.size() && from.bytes() == from.size() * sizeof(int))
        to.data()[i] = from.data()[i] + seen.data()[i];
}

} // namespace

TEST_CASE("a kernel takes device spans") {
    const CudaStream stream;
    DeviceBuffer<int, Cuda> from(4);
    DeviceBuffer<int, Cuda> to(4);
    copy_and_wait(stream, from, std::vector<int>{1, 2, 3, 4});
    copy_and_wait(stream, to, std::vector<int>{10, 20, 30, 40});
    add<<<1, 32, 0, stream.get()>>>(from, to);
    Cuda::check_launches();
    std::vector<int> seen(4);
    copy_and_wait(stream, seen, to);
    CHECK(seen == std::vector<int>{11, 22, 33, 44});
}
