// Work to be captured that does not take the stream it is to enqueue on.
// EXPECT: work to be captured must be callable as work(stream)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

void run(sluice::HostStreamRef stream) {
    sluice::GraphCapture<int, sluice::Host> graphs;
#if MISUSE
    graphs.run(stream, 1, [] {});
#else
    graphs.run(stream, 1, [](sluice::HostStreamRef s) { s.enqueue([] {}); });
#endif
}
