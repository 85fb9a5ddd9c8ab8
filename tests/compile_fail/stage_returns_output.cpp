// A stage that returns what it makes.
// FIRST: sluice::Pipeline: a stage returns what another one takes, and what a stage returns is ignored
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
#if MISUSE
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&) { return Slot{}; }};
#else
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot& out) { out = Slot{}; }};
#endif
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Slot&) {}};
    sluice::Pipeline pipeline{sluice::Stages{first, last}, sluice::Slots{[](int) { return Slot{}; }}};
}
