// Source and destination the wrong way round.
// EXPECT: sluice::copy: the destination's elements are const; it comes before the source, as in copy(stream, to, from)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void upload(sluice::HostStreamRef stream, const sluice::PinnedBuffer<float, sluice::Host>& source,
            sluice::DeviceBuffer<float, sluice::Host>& target) {
#if MISUSE
    sluice::copy(stream, source, target);
#else
    sluice::copy(stream, target, source);
#endif
}
