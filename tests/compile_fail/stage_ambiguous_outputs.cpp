// A stage that takes one of two outputs of one type, made by stages that are not its neighbours.
// EXPECT: tell them apart with sluice::Tagged
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

template <class Tag>
#if MISUSE
using Made = Features;
#else
using Made = sluice::Tagged<Tag, Features>;
#endif
struct Losses {};

void make() {
    sluice::Stage left{"left", [](sluice::HostStreamRef, const Images&, Made<struct Left>&) {}};
    sluice::Stage right{"right", [](sluice::HostStreamRef, const Images&, Made<struct Right>&) {}};
    sluice::Stage loss{"loss", [](sluice::HostStreamRef, const Images&, Losses&) {}};
    sluice::Stage join{"join", [](sluice::HostStreamRef, const Made<struct Left>&, const Made<struct Right>&,
                                  const Losses&) {}};
    sluice::Pipeline pipeline{sluice::Stages{left, right, loss, join},
                              sluice::Slots{[](int) { return Made<struct Left>{}; },
                                            [](int) { return Made<struct Right>{}; },
                                            [](int) { return Losses{}; }}};
}
