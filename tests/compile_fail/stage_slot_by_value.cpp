// A stage that takes its own slot by value, and fills a copy.
// EXPECT: sluice::Pipeline: a stage takes a slot by value, and what it writes there would be lost
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

#if MISUSE
using Out = Features;
#else
using Out = Features&;
#endif

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Out) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Features&) {}};
    sluice::Pipeline pipeline{sluice::Stages{encode, train}, sluice::Slots{[](int) { return Features{}; }}};
}
