// A lambda in place of a kernel, and a stream's owner in place of a reference.
// FIRST: sluice::launch_early: takes a StreamRef, dims, a kernel, which is a function and no lambda
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

void scale(float* numbers);

void run(const sluice::HostStream& stream, sluice::DeviceBuffer<float, sluice::Host>& numbers) {
#if MISUSE
    sluice::launch_early(
        stream.ref(), {.grid = 1, .block = 1}, [](float*) {}, numbers.data());
    sluice::launch_early(stream, {.grid = 1, .block = 1}, scale, numbers.data());
#else
    sluice::launch_early(stream.ref(), {.grid = 1, .block = 1}, scale, numbers.data());
#endif
}
