// Host memory where device memory is asked for.
// EXPECT: DeviceSpan<
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void launch(sluice::DeviceSpan<float, sluice::Host> values);

void use(sluice::DeviceBuffer<float, sluice::Host>& device,
         sluice::PinnedBuffer<float, sluice::Host>& pinned) {
#if MISUSE
    launch(pinned);
#else
    launch(device);
#endif
    (void)device;
    (void)pinned;
}
