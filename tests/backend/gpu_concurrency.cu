// Device streams run at the same time: each of two kernels waits for the other to have begun.
#include <sluice/backend/stream.hpp>
#include <sluice/memory/copy.hpp>

#include "support/doctest.hpp"

namespace backend_gpu_concurrency {

using namespace sluice;

namespace {

// Raises `mine`, then looks for `other` for at most five seconds, and notes whether it was raised. Nothing
// hangs if the kernels do not meet.
__global__ void meet(int* mine, int* other, int* met) {
    atomicExch(mine, 1);
    __threadfence();
    unsigned long long begin = 0;
    unsigned long long now = 0;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    *met = 0;
    do {
        if (atomicAdd(other, 0) == 1) {
            *met = 1;
            return;
        }
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < 5'000'000'000ull);
}

} // namespace

TEST_CASE("two streams run at the same time") {
    DeviceBuffer<int, Cuda> flags(4);
    const CudaStream left;
    const CudaStream right;
    fill_bytes(left, flags, 0);
    left.sync();
    int* const flag = flags.data();

    // Loading a kernel may wait for the device: have that done before two of them must run together.
    meet<<<1, 1, 0, left.get()>>>(flag, flag, flag + 2);
    left.sync();
    fill_bytes(left, flags, 0);
    left.sync();

    meet<<<1, 1, 0, left.get()>>>(flag, flag + 1, flag + 2);
    meet<<<1, 1, 0, right.get()>>>(flag + 1, flag, flag + 3);
    Cuda::check_launches();
    left.sync();
    right.sync();
    int met[2] = {-1, -1};
    copy_and_wait(left, met, flags.span().last(2));
    CHECK(met[0] == 1);
    CHECK(met[1] == 1);
}

} // namespace backend_gpu_concurrency
