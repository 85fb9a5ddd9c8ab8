// A step of a pair of buffers that takes no buffers.
// FIRST: sluice::PingPong::iterate: the step must be callable as step(stream, from, to)
#include <sluice/sluice.hpp>

using Span = sluice::DeviceSpan<float, sluice::Host>;

void run(sluice::HostStreamRef stream, sluice::PingPong<float, sluice::Host>& pair) {
#if MISUSE
    pair.iterate(stream, 2, [](sluice::HostStreamRef, Span) {});
#else
    pair.iterate(stream, 2, [](sluice::HostStreamRef, Span, Span) {});
#endif
}
