// Stages and their maker, without Stages{} and Slots{}.
// FIRST: sluice::Pipeline: a pipeline is made of Stages{...}, of Slots{...} where stages make something
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Slot&) {}};
    const auto make = [](int) { return Slot{}; };
#if MISUSE
    sluice::Pipeline pipeline{first, last, make};
#else
    sluice::Pipeline pipeline{sluice::Stages{first, last}, sluice::Slots{make}};
#endif
}
