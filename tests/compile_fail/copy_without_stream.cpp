// A copy that is in no order.
// FIRST: sluice::copy: a stream comes first, as in copy(stream, to, from)
#include <sluice/sluice.hpp>

void run() {
    const sluice::HostStream stream;
    sluice::DeviceBuffer<float, sluice::Host> device(4);
    const sluice::PinnedBuffer<float, sluice::Host> pinned(4);
#if MISUSE
    sluice::copy(device, pinned);
#else
    sluice::copy(stream, device, pinned);
#endif
}
