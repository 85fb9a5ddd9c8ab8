// A stage with an output, and no slots.
// EXPECT: sluice::Pipeline: a stage has an output, and no slot makers are given; name a slot maker for each stage's
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Images&) {}};
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Images&) {}};
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{first, last}};
#else
    sluice::Pipeline pipeline{sluice::Stages{first, last}, sluice::Slots{[](int) { return Images{}; }}};
#endif
    pipeline.submit(1);
}
