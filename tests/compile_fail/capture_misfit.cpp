// Work for a plain capture that does not take the stream it is to enqueue on.
// FIRST: work to be captured must be callable as work(stream)
// AT-MOST: 3 errors
#include <sluice/sluice.hpp>

void run(sluice::HostStreamRef stream) {
#if MISUSE
    (void)sluice::capture(stream, [] {});
#else
    (void)sluice::capture(stream, [](sluice::HostStreamRef s) { s.enqueue([] {}); });
#endif
}
