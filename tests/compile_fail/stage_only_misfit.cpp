// A stage alone that expects a slot, where there are none.
// EXPECT: sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker makes for it
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
