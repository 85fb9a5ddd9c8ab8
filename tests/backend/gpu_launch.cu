// Launches that the device refuses, and kernels on streams.
#include <sluice/backend/stream.hpp>
#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"
#include "support/error_text.hpp"

namespace backend_gpu_launch {

using namespace sluice;
using namespace sluice::test;

namespace {
__global__ void add_one(int* value) { *value += 1; }
} // namespace

TEST_CASE("a launch that was refused is found once") {
    const CudaStream stream;
    DeviceBuffer<int, Cuda> value(1);
    fill_bytes(stream, value, 0);
    add_one<<<1, 4096, 0, stream.get()>>>(value.data()); // more threads than a block may have
    const auto error = caught_error([] { Cuda::check_launches(); });
    REQUIRE(error);
    CHECK(contains(error->name(), "cudaErrorInvalid")); // …Configuration or …Value, by the driver
    CHECK(contains(error->call(), "cudaGetLastError()"));
    Cuda::check_launches(); // forgotten

    int seen = -1;
    copy_and_wait(stream, std::span(&seen, 1), value);
    CHECK(seen == 0);
}

TEST_CASE("kernels and copies of one stream are in order") {
    const CudaStream stream;
    DeviceBuffer<int, Cuda> value(1);
    fill_bytes(stream, value, 0);
    for (int i = 0; i < 1000; ++i)
        add_one<<<1, 1, 0, stream.ref()>>>(value.data()); // a StreamRef is a cudaStream_t where one is wanted
    Cuda::check_launches();
    int seen = -1;
    copy_and_wait(stream, std::span(&seen, 1), value);
    CHECK(seen == 1000);
}

} // namespace backend_gpu_launch
