// An option that is spelt as there is none.
// FIRST: sluice::PipelineOptions: there is no option 'slot'; expected slots
#include <sluice/sluice.hpp>

struct Slot {};

#if MISUSE
#define SLOTS slot
#else
#define SLOTS slots
#endif

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage second{"second", [](sluice::HostStreamRef, const Slot&) {}};
    const auto make = [](int) { return Slot{}; };
    sluice::TwoStreamPipeline pipeline{first, second, make, {.SLOTS = 3}};
    sluice::TwoStreamPipeline plain{first, second, make, {}};
    sluice::TwoStreamPipeline named{first, second, make, {sluice::Schedule::serial}};
}

#undef SLOTS
