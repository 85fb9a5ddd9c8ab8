// Elements of one type copied over elements of another.
// EXPECT: source and destination must hold the same type of elements
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void upload(sluice::HostStreamRef stream, sluice::DeviceSpan<float, sluice::Host> to,
            sluice::PinnedSpan<int, sluice::Host> integers, sluice::PinnedSpan<float, sluice::Host> floats) {
#if MISUSE
    sluice::copy(stream, to, integers);
#else
    sluice::copy(stream, to, floats);
#endif
    (void)integers;
    (void)floats;
}
