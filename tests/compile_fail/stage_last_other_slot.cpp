// A last stage that takes something else than the slot before it. It is refused when the pipeline is made,
// before any batch is submitted.
// EXPECT: sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker makes for it
// EXPECT: FitsTogether<sluice::Stage<
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Features {};
struct Losses {};

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Features&) {}};
#if MISUSE
    sluice::Stage train{"train", [](sluice::HostStreamRef, Losses&) {}};
#else
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
#endif
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
}
