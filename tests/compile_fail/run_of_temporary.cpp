// A source that would be gone before the loop over its results.
// FIRST: sluice::Pipeline::run: the source is a temporary, and must outlive the loop
#include <sluice/sluice.hpp>

#include <vector>

struct Sum {
    int value = 0;
};

void run() {
    sluice::Pipeline pipeline{sluice::Stages{sluice::Stage{"add", [](const int&, Sum&) {}}},
                              sluice::Slots{[](int) { return Sum{}; }}};
    std::vector<int> batches{1, 2, 3};
#if MISUSE
    for (const auto& sum : pipeline.run(std::vector<int>{1, 2, 3}))
#else
    for (const auto& sum : pipeline.run(batches))
#endif
        (void)sum.value;
    (void)batches;
}
