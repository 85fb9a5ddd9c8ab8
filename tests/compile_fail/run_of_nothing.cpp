// A loop over the results of a stage that makes nothing.
// FIRST: sluice::Pipeline::run: the last stage makes nothing; give it an output
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot&) {}};
    const auto make = [](int) { return Slot{}; };
    int batches[] = {1, 2, 3};
#if MISUSE
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Slot&) {}};
    sluice::Pipeline pipeline{sluice::Stages{first, last}, sluice::Slots{make}};
#else
    sluice::Pipeline pipeline{sluice::Stages{first}, sluice::Slots{make}};
#endif
    for (const auto& result : pipeline.run(batches))
        (void)result;
}
