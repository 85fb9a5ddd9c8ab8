// An AnyPipeline that does not say what it takes.
// FIRST: sluice::AnyPipeline: name the batch that it takes
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    sluice::Stage first{"first", [](sluice::StreamRef, const int&, Slot&) {}};
    sluice::Stage last{"last", [](sluice::StreamRef, const Slot&) {}};
    const sluice::Slots makers{[](int) { return Slot{}; }};
#if MISUSE
    sluice::AnyPipeline pipeline{sluice::Stages{first, last}, makers};
#else
    sluice::AnyPipeline<int> pipeline{sluice::Stages{first, last}, makers};
#endif
}
