// Memory of one backend on a stream of another.
// EXPECT: the memory belongs to another backend than the stream
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

// A second backend, as far as a span's type goes.
struct Other : sluice::Host {};

#if MISUSE
using Place = Other;
#else
using Place = sluice::Host;
#endif

void upload(sluice::HostStreamRef stream, sluice::DeviceSpan<float, Place> to,
            sluice::PinnedSpan<float, sluice::Host> from) {
    sluice::copy(stream, to, from);
}
