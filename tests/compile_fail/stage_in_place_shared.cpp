// A stage that changes a slot in place which another one takes unchanged.
// EXPECT: sluice::Pipeline: an output that several stages read must be taken as const by each of them
// AT-MOST: 1 error
#include <sluice/pipeline.hpp>

using Slot = sluice::DeviceBuffer<int, sluice::Host>;

void make_pipeline() {
    sluice::Stage make{"make", [](sluice::HostStreamRef, int, Slot&) {}};
    sluice::Stage read{"read", [](sluice::HostStreamRef, const Slot&) {}};
    sluice::Stage change{"change", [](sluice::HostStreamRef, sluice::InPlace<Slot>&) {}};
    const auto make_slot = [](int) { return Slot{8}; };
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{make, read, change}, sluice::Slots{make_slot}};
#else
    sluice::Pipeline pipeline{sluice::Stages{make, change, read}, sluice::Slots{make_slot}};
#endif
}
