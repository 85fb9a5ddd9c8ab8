// Ordinary host memory where device memory is asked for.
// EXPECT: DeviceSpan<
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <span>

void launch(sluice::DeviceSpan<float, sluice::Host> values);

void use(sluice::DeviceSpan<float, sluice::Host> device, std::span<float> host) {
#if MISUSE
    launch(host);
#else
    launch(device);
#endif
    (void)device;
    (void)host;
}
