// Device memory handed to code that takes host memory.
// EXPECT: std::span<float
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <span>

std::size_t count(std::span<float> values);

std::size_t use(sluice::DeviceSpan<float, sluice::Host> device,
                sluice::PinnedSpan<float, sluice::Host> pinned) {
#if MISUSE
    return count(device);
#else
    return count(pinned);
#endif
    (void)device;
    (void)pinned;
}
