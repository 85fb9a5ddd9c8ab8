// A span of a buffer that is gone at the end of the line.
// EXPECT: deleted
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#if MISUSE
const sluice::PinnedSpan<int, sluice::Host> span = sluice::PinnedBuffer<int, sluice::Host>{5}.span();
const sluice::DeviceSpan<int, sluice::Host> other = sluice::DeviceBuffer<int, sluice::Host>{5}.span();
#else
sluice::PinnedBuffer<int, sluice::Host> buffer{5};
const sluice::PinnedSpan<int, sluice::Host> span = buffer.span();
const sluice::DeviceBuffer<int, sluice::Host> constant{5};
const sluice::DeviceSpan<const int, sluice::Host> other = constant.span();
#endif
