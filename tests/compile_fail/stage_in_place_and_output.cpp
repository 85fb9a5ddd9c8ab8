// A stage that hands its input on, changed, and makes something else as well.
// EXPECT: sluice::Pipeline: a stage changes a slot in place, which is its output then, and makes or changes another one
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};
struct Scores {};

#if MISUSE
using In = sluice::InPlace<Features>;
#else
using In = const Features;
#endif

void make() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage score{"score", [](sluice::HostStreamRef, In&, Scores&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Features&, const Scores&) {}};
    sluice::Pipeline pipeline{sluice::Stages{encode, score, train},
                              sluice::Slots{[](int) { return Features{}; }, [](int) { return Scores{}; }}};
}
