// A buffer that is to be made with its contents.
// FIRST: sluice::DeviceBuffer: it is made of a number of elements, and filled then
#include <sluice/sluice.hpp>

#include <vector>

void run() {
    const std::vector<float> values(4);
#if MISUSE
    const sluice::DeviceBuffer<float, sluice::Host> buffer{values};
#else
    const sluice::DeviceBuffer<float, sluice::Host> buffer{values.size()};
#endif
}
