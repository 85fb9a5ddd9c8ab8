// An output that two stages take, one of which changes it.
// EXPECT: sluice::Pipeline: an output that several stages read must be taken as const by each of them
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

#if MISUSE
using In = Features;
#else
using In = const Features;
#endif

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage left{"left", [](sluice::HostStreamRef, const Features&, const Images&) {}};
    sluice::Stage right{"right", [](sluice::HostStreamRef, In&, const Images&) {}};
    sluice::Pipeline pipeline{sluice::Stages{encode, left, right},
                              sluice::Slots{[](int) { return Features{}; }}};
}
