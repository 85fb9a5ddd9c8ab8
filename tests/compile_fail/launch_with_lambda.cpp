// A lambda in place of a kernel, and a stream's owner in place of a reference.
// FIRST: sluice::launch_with: takes a StreamRef, dims, a kernel, which is a function and no lambda
// AT-MOST: 2 errors
#include <tuple>

#include <sluice/sluice.hpp>

void scale(float* numbers);

void run(const sluice::HostStream& stream, sluice::DeviceBuffer<float, sluice::Host>& numbers) {
    const auto arguments = [&] { return std::tuple(numbers.data()); };
#if MISUSE
    sluice::launch_with(
        stream.ref(), {.grid = 1, .block = 1}, [](float*) {}, arguments);
    sluice::launch_with(stream, {.grid = 1, .block = 1}, scale, arguments);
#else
    sluice::launch_with(stream.ref(), {.grid = 1, .block = 1}, scale, arguments);
#endif
}
