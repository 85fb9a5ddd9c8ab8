// An owner of device memory copied by value: two owners of one allocation.
// EXPECT: deleted
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <utility>

sluice::DeviceBuffer<float, sluice::Host> keep(sluice::DeviceBuffer<float, sluice::Host>& buffer) {
#if MISUSE
    sluice::DeviceBuffer<float, sluice::Host> kept = buffer;
#else
    sluice::DeviceBuffer<float, sluice::Host> kept = std::move(buffer);
#endif
    return kept;
}
