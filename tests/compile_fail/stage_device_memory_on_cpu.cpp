// A stage that forgets its stream, and is handed device memory.
// EXPECT: sluice::Pipeline: a stage's callable takes no stream, so it runs on the CPU, and is handed device memory
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

using Images = sluice::PinnedBuffer<float, sluice::Host>;
struct Features {
    sluice::DeviceBuffer<float, sluice::Host> values{8};
};
struct Both {
    sluice::DeviceBuffer<float, sluice::Host> on_device{8};
    sluice::PinnedBuffer<float, sluice::Host> on_host{8};
};

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
#if MISUSE
    sluice::Stage train{"train", [](const Features&) {}};
#else
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Features&) {}};
#endif
    sluice::Pipeline pipeline{sluice::Stages{encode, train}, sluice::Slots{[](int) { return Features{}; }}};
    sluice::Pipeline beside{
        sluice::Stages{sluice::Stage{"make", [](sluice::HostStreamRef, const Images&, Both&) {}},
                       sluice::Stage{"look", [](const Both&) {}}},
        sluice::Slots{[](int) { return Both{}; }}};
}
