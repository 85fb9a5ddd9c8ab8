// Stages that are for streams of two backends.
// EXPECT: sluice::Pipeline: all stages must take streams of the same backend
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

// A second backend, as far as a stream's type goes.
struct Other : sluice::Host {};

#if MISUSE
using Second = Other;
#else
using Second = sluice::Host;
#endif

void make() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage second{"second", [](sluice::BasicStreamRef<Second>, Slot&) {}};
    sluice::TwoStreamPipeline pipeline{first, second, [](int) { return Slot{}; }};
}
