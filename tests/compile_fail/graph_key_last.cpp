// The key behind the work.
// FIRST: sluice::GraphCapture: behind the stream comes a key of this GraphCapture's type, and then the work
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void run(sluice::HostStreamRef stream) {
    sluice::GraphCapture<int, sluice::Host> graphs;
    const auto work = [](sluice::HostStreamRef s) { s.enqueue([] {}); };
#if MISUSE
    graphs.run(stream, work, 1);
#else
    graphs.run(stream, 1, work);
#endif
}
