// What was made of several batches, of the batch itself, which no stage has made.
// EXPECT: sluice::Pipeline: a stage takes sluice::Last or sluice::InPlace of something that no earlier stage makes
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

#if MISUSE
using In = sluice::Last<2, Images>;
#else
using In = Images;
#endif

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const In&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Features&) {}};
    sluice::Pipeline pipeline{sluice::Stages{encode, train}, sluice::Slots{[](int) { return Features{}; }}};
}
