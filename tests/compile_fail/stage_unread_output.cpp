// A stage in the middle that makes what no stage takes.
// EXPECT: sluice::Pipeline: no stage takes the output of a stage that is not the last one
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

#if MISUSE
using Taken = Images;
#else
using Taken = Features;
#endif

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Taken&) {}};
    sluice::Pipeline pipeline{sluice::Stages{encode, train}, sluice::Slots{[](int) { return Features{}; }}};
}
