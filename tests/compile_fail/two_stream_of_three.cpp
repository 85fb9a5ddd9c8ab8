// More than two stages.
// FIRST: sluice::TwoStreamPipeline: it is made of two stages and what makes the slots between them
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Slot&) {}};
    const auto make = [](int) { return Slot{}; };
#if MISUSE
    sluice::TwoStreamPipeline pipeline{first, last, last, make};
#else
    sluice::TwoStreamPipeline pipeline{first, last, make};
#endif
}
