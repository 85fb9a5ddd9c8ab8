// Callables that are no stages.
// FIRST: sluice::Stages: each must be a sluice::Stage
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    const auto first = [](sluice::HostStreamRef, const int&, Slot&) {};
    const auto last = [](sluice::HostStreamRef, const Slot&) {};
#if MISUSE
    const sluice::Stages stages{first, last};
#else
    const sluice::Stages stages{sluice::Stage{"first", first}, sluice::Stage{"last", last}};
#endif
    (void)stages;
}
