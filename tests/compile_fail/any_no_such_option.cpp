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
    sluice::AnyPipeline<int, sluice::Host> pipeline{
        sluice::Stages{first, second}, sluice::Slots{make}, {.SLOTS = 3}};
    sluice::AnyPipeline<int, sluice::Host> plain{sluice::Stages{first, second}, sluice::Slots{make}, {}};
    sluice::AnyPipeline<int, sluice::Host> named{
        sluice::Stages{first, second}, sluice::Slots{make}, {sluice::Schedule::serial}};
}

#undef SLOTS
