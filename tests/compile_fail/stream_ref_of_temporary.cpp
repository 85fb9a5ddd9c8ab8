// A reference to a stream that is gone at the end of the line.
// EXPECT: sluice::BasicStream: a reference to a temporary stream would dangle
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

sluice::HostStream make();

void run(const sluice::HostStream& stream) {
#if MISUSE
    const sluice::HostStreamRef ref = make();
#else
    const sluice::HostStreamRef ref = stream;
#endif
    ref.sync();
    (void)stream;
}
