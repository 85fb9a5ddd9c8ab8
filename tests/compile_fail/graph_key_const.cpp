// A key that cannot be kept.
// FIRST: sluice::GraphCapture: keys are kept: a key's type can be copied
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#if MISUSE
using Key = const int;
#else
using Key = int;
#endif

void run(sluice::HostStreamRef stream) {
    sluice::GraphCapture<Key, sluice::Host> graphs;
    graphs.run(stream, 1, [](sluice::HostStreamRef s) { s.enqueue([] {}); });
}
