// Two sides of which neither is the device's.
// EXPECT: sluice::copy: one side must be device memory
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void move_over(sluice::HostStreamRef stream, sluice::PinnedBuffer<float, sluice::Host>& to,
               sluice::PinnedBuffer<float, sluice::Host>& from,
               sluice::DeviceBuffer<float, sluice::Host>& device) {
#if MISUSE
    sluice::copy(stream, to, from);
#else
    sluice::copy(stream, device, from);
    sluice::copy(stream, to, device);
#endif
}
