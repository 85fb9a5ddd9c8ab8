// One slot maker more than there are outputs.
// EXPECT: sluice::Pipeline: a slot maker is left over
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Features&) {}};
    const auto features = [](int) { return Features{}; };
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{encode, train},
                              sluice::Slots{features, [](int) { return 1.5; }}};
#else
    sluice::Pipeline pipeline{sluice::Stages{encode, train}, sluice::Slots{features}};
#endif
}
