// A fill with elements that no backend has a fill for.
// EXPECT: sluice::fill: elements must be of 1, 2 or 4 bytes
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void clear(sluice::HostStreamRef stream, sluice::DeviceBuffer<double, sluice::Host>& numbers,
           sluice::DeviceBuffer<float, sluice::Host>& floats) {
#if MISUSE
    sluice::fill(stream, numbers, 1.0);
#else
    sluice::fill(stream, floats, 1.0F);
#endif
    sluice::fill_bytes(stream, numbers, 0);
}
