// A stage alone that expects a slot, where there are none.
// EXPECT: sluice::Pipeline: the only stage's callable must take (stream, const Batch&)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Features {};

void run(int batch) {
#if MISUSE
    sluice::Stage only{"only", [](sluice::HostStreamRef, const int&, Features&) {}};
#else
    sluice::Stage only{"only", [](sluice::HostStreamRef, const int&) {}};
#endif
    sluice::Pipeline pipeline{sluice::Stages{only}, sluice::Slots{}};
    pipeline.submit(batch);
}
