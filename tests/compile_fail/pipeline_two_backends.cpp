// Stages that are for streams of two backends.
// EXPECT: sluice::Pipeline: all stages must take streams of the same backend
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

// Two further backends, as far as a stream's type goes: Host's own stages would be CPU stages beside them.
struct Other : sluice::Host {};
struct Another : sluice::Host {};

#if MISUSE
using Second = Another;
#else
using Second = Other;
#endif

void make() {
    sluice::Stage first{"first", [](sluice::BasicStreamRef<Other>, const int&, Slot&) {}};
    sluice::Stage second{"second", [](sluice::BasicStreamRef<Second>, Slot&) {}};
    sluice::TwoStreamPipeline pipeline{first, second, [](int) { return Slot{}; }};
}
