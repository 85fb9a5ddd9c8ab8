// A buffer that is gone at the end of the line, converted to a span.
// EXPECT: deleted
// AT-MOST: 2 errors
#include <utility>

#include <sluice/sluice.hpp>

sluice::DeviceBuffer<int, sluice::Host> device{5};
const sluice::PinnedBuffer<int, sluice::Host> pinned{5};

#if MISUSE
const sluice::DeviceSpan<int, sluice::Host> span = std::move(device);
const sluice::PinnedSpan<const int, sluice::Host> other = sluice::PinnedBuffer<int, sluice::Host>{5};
#else
const sluice::DeviceSpan<int, sluice::Host> span = device;
const sluice::PinnedSpan<const int, sluice::Host> other = pinned;
#endif
