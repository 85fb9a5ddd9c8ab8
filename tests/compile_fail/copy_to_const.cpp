// A destination that may only be read.
// EXPECT: the destination's elements are const
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#if MISUSE
using Element = const float;
#else
using Element = float;
#endif

void upload(sluice::HostStreamRef stream, sluice::DeviceSpan<Element, sluice::Host> to,
            sluice::PinnedSpan<float, sluice::Host> from) {
    sluice::copy(stream, to, from);
}
