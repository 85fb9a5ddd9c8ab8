// A callable for a stream that takes something.
// FIRST: sluice: what is enqueued is called without arguments, as callable()
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

void run(sluice::HostStreamRef stream, const sluice::HostStream& owner) {
#if MISUSE
    stream.enqueue([](int) {});
    owner.enqueue([](sluice::HostStreamRef) {});
#else
    stream.enqueue([] {});
    owner.enqueue([] {});
#endif
}
