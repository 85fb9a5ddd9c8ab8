// A first stage that takes something else than what its slot maker makes.
// EXPECT: sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker makes for it
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
