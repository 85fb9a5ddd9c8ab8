// Results of a stage whose output has no slot maker.
// EXPECT: sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker makes for it
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#include <vector>

struct Features {
    int value;
};
struct Result {
    int value;
};

int run() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, const Features&, Result&) {}};
    const std::vector<int> source(8);
#if MISUSE
    sluice::Pipeline pipeline{sluice::Stages{encode, train}, sluice::Slots{[](int) { return Features{}; }}};
#else
    sluice::Pipeline pipeline{sluice::Stages{encode, train},
                              sluice::Slots{[](int) { return Features{}; }, [](int) { return Result{}; }}};
#endif
    int sum = 0;
    for (const auto& result : pipeline.run(source))
        sum += result.value;
    return sum;
}
