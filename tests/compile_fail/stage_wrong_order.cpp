// Stages that are not listed in the order in which they need each other.
// EXPECT: list each stage after those whose outputs it takes
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Features {};

struct Losses {};

void make() {
    sluice::Stage copy{"copy", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Features&, Losses&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Losses&) {}};
    const auto features = [](int) { return Features{}; };
    const auto losses = [](int) { return Losses{}; };
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{copy, train, encode}, sluice::Slots{features, losses}};
#else
    sluice::Pipeline pipeline{sluice::Stages{copy, encode, train}, sluice::Slots{features, losses}};
#endif
}
