// A last stage that asks for a slot to its right, where there is none.
// EXPECT: sluice::Pipeline: a stage takes the same output twice; give what it makes a slot maker of its own
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Features {};

void run() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Features&) {}};
#if MISUSE
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&, Features&) {}};
#else
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
#endif
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
    const int batch = 1;
    pipeline.submit(batch);
    pipeline.finish();
}
