// Two sides of which neither is memory of a backend's.
// EXPECT: sluice::copy: ordinary host memory cannot be copied asynchronously
// AT-MOST: 1 error
#include <vector>

#include <sluice/sluice.hpp>

void move_over(sluice::HostStreamRef stream, sluice::PinnedBuffer<float, sluice::Host>& to,
               sluice::PinnedBuffer<float, sluice::Host>& from, std::vector<float>& host) {
#if MISUSE
    sluice::copy(stream, host, std::vector<float>(host.size()));
#else
    (void)host;
    sluice::copy(stream, to, from);
#endif
}
