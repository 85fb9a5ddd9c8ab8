// An AnyPipeline of stages without a maker.
// FIRST: sluice::AnyPipeline: it is made of Stages{...} and Slots{...}
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    sluice::Stage first{"first", [](sluice::StreamRef, const int&, Slot&) {}};
    sluice::Stage last{"last", [](sluice::StreamRef, const Slot&) {}};
#if MISUSE
    sluice::AnyPipeline<int> pipeline{first, last};
#else
    sluice::AnyPipeline<int> pipeline{first, last, [](int) { return Slot{}; }};
#endif
}
