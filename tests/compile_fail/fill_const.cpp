// A fill of what may only be read.
// EXPECT: sluice::fill: the destination's elements are const
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void clear(sluice::HostStreamRef stream, const sluice::DeviceBuffer<float, sluice::Host>& constant,
           sluice::DeviceBuffer<float, sluice::Host>& buffer) {
#if MISUSE
    sluice::fill(stream, constant, 0);
#else
    (void)constant;
    sluice::fill(stream, buffer, 0);
#endif
}
