// A fill in stream order of memory that the device does not own.
// EXPECT: sluice::fill_bytes: fills device memory only
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void clear(sluice::HostStreamRef stream, sluice::DeviceBuffer<float, sluice::Host>& device,
           sluice::PinnedBuffer<float, sluice::Host>& pinned) {
#if MISUSE
    sluice::fill_bytes(stream, pinned, 0);
#else
    sluice::fill_bytes(stream, device, 0);
#endif
    (void)device;
    (void)pinned;
}
