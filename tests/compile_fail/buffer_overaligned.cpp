// Elements that need more alignment than any backend's memory has.
// EXPECT: elements must not be aligned to more than 256 bytes
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#if MISUSE
struct alignas(512) Wide {
    float values[128];
};
#else
struct alignas(256) Wide {
    float values[64];
};
#endif

sluice::DeviceBuffer<Wide, sluice::Host> device{1};
sluice::PinnedBuffer<Wide, sluice::Host> pinned{1};
