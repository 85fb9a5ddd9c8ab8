// A kernel that faults. The device is lost to the process from then on, so this is a program of its own, and
// its test cases are one sequence.
#include <sluice/backend/stream.hpp>
#include <sluice/memory/copy.hpp>

#include "support/alive.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"

using namespace sluice;
using namespace sluice::test;

namespace {
__global__ void fault(int* nowhere) { *nowhere = 1; }
} // namespace

TEST_CASE("a fault is reported by each wait and each later call, and destructors stay quiet") {
    const Alive before = alive_now<Cuda>();
    {
        const CudaStream stream;
        const CudaStream other;
        CudaEvent event;
        DeviceBuffer<int, Cuda> device(16);
        PinnedBuffer<int, Cuda> pinned(16);

        fault<<<1, 1, 0, stream.get()>>>(nullptr);
        Cuda::check_launches(); // the launch itself was fine
        const auto error = caught_error([&] { stream.sync(); });
        REQUIRE(error);
        CHECK(error->name() == "cudaErrorIllegalAddress");
        CHECK(contains(error->call(), "cudaStreamSynchronize("));

        CHECK_FALSE(text_of([&] { (void)stream.is_done(); }).empty());
        CHECK_FALSE(text_of([&] { event.record(other); }).empty());
        CHECK_FALSE(text_of([&] { copy(other, device, pinned); }).empty());
        CHECK_FALSE(text_of([&] { const CudaStream third; }).empty());
        CHECK_FALSE(text_of([&] { const DeviceBuffer<int, Cuda> more(16); }).empty());
    }
    CHECK(alive_now<Cuda>() == before);
}
