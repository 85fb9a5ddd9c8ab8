// A middle stage with its two slots the wrong way round.
// EXPECT: sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker makes for it
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

#if MISUSE
using In = Features;
using Out = Images;
#else
using In = Images;
using Out = Features;
#endif

void run() {
    sluice::Stage copy{"copy", [](sluice::HostStreamRef, const int&, Images&) {}};
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, In&, Out&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
    sluice::Pipeline pipeline{sluice::Stages{copy, encode, train},
                              sluice::Slots{[](int) { return Images{}; }, [](int) { return Features{}; }}};
    const int batch = 1;
    pipeline.submit(batch);
    pipeline.finish();
}
