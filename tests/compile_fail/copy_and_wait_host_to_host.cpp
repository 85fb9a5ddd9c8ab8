// A copy between two places that are both the host's.
// EXPECT: sluice::copy_and_wait: one side must be device memory
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <vector>

void download(sluice::HostStreamRef stream, std::vector<float>& to,
              sluice::PinnedSpan<const float, sluice::Host> pinned,
              sluice::DeviceSpan<const float, sluice::Host> device) {
#if MISUSE
    sluice::copy_and_wait(stream, to, pinned);
#else
    sluice::copy_and_wait(stream, to, device);
#endif
    (void)pinned;
    (void)device;
}
