// A loop over the results of the elements of a std::vector<bool>, which are no bools.
// EXPECT: an element of a std::vector<bool> refers to a bit and is no bool; give it a bool
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <vector>

struct Sum {
    int value = 0;
};

void run() {
    sluice::Pipeline pipeline{sluice::Stages{sluice::Stage{"add", [](const bool&, Sum&) {}}},
                              sluice::Slots{[](int) { return Sum{}; }}};
#if MISUSE
    std::vector<bool> batches{true, false};
#else
    std::vector<char> batches{true, false};
#endif
    for (const auto& sum : pipeline.run(batches))
        (void)sum.value;
}
