// Device memory read by the host.
// EXPECT: DeviceSpan<float
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

float first(sluice::DeviceSpan<float, sluice::Host> device, sluice::PinnedSpan<float, sluice::Host> pinned) {
#if MISUSE
    return device[0];
#else
    return pinned[0];
#endif
    (void)device;
    (void)pinned;
}
