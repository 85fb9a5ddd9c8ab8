// A literal 0 for a stream, which would be the legacy default stream that waits for all others.
// EXPECT: deleted
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void launch(sluice::HostStreamRef stream);

void use(sluice::HostStreamRef stream) {
#if MISUSE
    launch(0);
#else
    launch(stream);
#endif
    (void)stream;
}
