// Stages that forget their stream, and take device memory in a window, or to change it.
// EXPECT: sluice::Pipeline: a stage's callable takes no stream, so it runs on the CPU, and is handed device memory
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

using Features = sluice::DeviceBuffer<float, sluice::Host>;
using Host = sluice::PinnedBuffer<float, sluice::Host>;

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Features&) {}};
    sluice::Stage fetch{"fetch", [](sluice::HostStreamRef, const int&, Host&) {}};
    const auto features = [](int) { return Features{8}; };
    const auto host = [](int) { return Host{8}; };
#if MISUSE
    sluice::Pipeline window{
        sluice::Stages{encode, sluice::Stage{"look", [](const sluice::Last<2, Features>&) {}}},
        sluice::Slots{features}};
    sluice::Pipeline change{
        sluice::Stages{encode, sluice::Stage{"change", [](sluice::InPlace<Features>&) {}}},
        sluice::Slots{features}};
#else
    sluice::Pipeline window{sluice::Stages{fetch, sluice::Stage{"look", [](const sluice::Last<2, Host>&) {}}},
                            sluice::Slots{host}};
    sluice::Pipeline change{sluice::Stages{fetch, sluice::Stage{"change", [](sluice::InPlace<Host>&) {}}},
                            sluice::Slots{host}};
#endif
    (void)encode;
    (void)fetch;
    (void)features;
    (void)host;
}
