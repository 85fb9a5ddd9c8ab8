// Work without a key, in a cache of graphs that have keys.
// EXPECT: sluice::GraphCapture: the key is missing
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void run(sluice::HostStreamRef stream) {
    sluice::GraphCapture<int, sluice::Host> graphs;
    const auto work = [](sluice::HostStreamRef s) { s.enqueue([] {}); };
#if MISUSE
    graphs.run(stream, work);
#else
    graphs.run(stream, 1, work);
#endif
}
