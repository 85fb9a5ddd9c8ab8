// Pageable memory in an asynchronous copy: the copy would run after the vector may have gone.
// EXPECT: ordinary host memory cannot be copied asynchronously; use a PinnedBuffer, a PinnedSpan of page-locked memory, or copy_and_wait
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <vector>

void upload(sluice::HostStreamRef stream, sluice::DeviceSpan<float, sluice::Host> to,
            const std::vector<float>& from) {
#if MISUSE
    sluice::copy(stream, to, from);
#else
    sluice::copy_and_wait(stream, to, from);
#endif
}
