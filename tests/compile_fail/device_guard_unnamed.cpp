// A guard without a name goes at once.
// EXPECT: without a name it goes at once
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#pragma GCC diagnostic error "-Wunused-result"

void allocate(int device) {
#if MISUSE
    sluice::DeviceGuard<sluice::Host>{device};
#else
    const sluice::DeviceGuard<sluice::Host> guard{device};
#endif
    (void)sluice::DeviceBuffer<float, sluice::Host>{8};
}
