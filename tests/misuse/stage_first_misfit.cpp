// A first stage that takes something else than what its slot maker makes.
// EXPECT: the first stage's callable must take (stream, const Batch&, Out&)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Features {};
struct Other {};

#if MISUSE
using Taken = Other;
#else
using Taken = Features;
#endif

void run() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Taken&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
    const int batch = 1;
    pipeline.submit(batch);
    pipeline.finish();
}
