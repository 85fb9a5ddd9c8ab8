// Options before what they are for.
// FIRST: sluice::Pipeline: a pipeline is made of Stages{...}, of Slots{...} where stages make something
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Slot&) {}};
    const sluice::Slots makers{[](int) { return Slot{}; }};
    const sluice::PipelineOptions options{.slots = 3};
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{first, last}, options, makers};
#else
    sluice::Pipeline pipeline{sluice::Stages{first, last}, makers, options};
#endif
}
