// A callable that does not name its types, in a pipeline that is no chain.
// EXPECT: each stage's callable must name the types that it takes, not auto
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage left{"left", [](sluice::HostStreamRef, const Features&) {}};
#if MISUSE
    sluice::Stage right{"right", [](sluice::HostStreamRef, const auto&) {},
                        sluice::StageOptions<sluice::Host>{}};
#else
    sluice::Stage right{"right", [](sluice::HostStreamRef, const Features&) {},
                        sluice::StageOptions<sluice::Host>{}};
#endif
    sluice::Pipeline pipeline{sluice::Stages{encode, left, right},
                              sluice::Slots{[](int) { return Features{}; }}};
}
