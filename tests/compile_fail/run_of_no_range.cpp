// A loop over the results of a batch alone.
// FIRST: sluice::Pipeline::run: the source is no range of batches, since it has no begin() and end()
#include <sluice/sluice.hpp>

struct Sum {
    int value = 0;
};

void run() {
    sluice::Pipeline pipeline{sluice::Stages{sluice::Stage{"add", [](const int&, Sum&) {}}},
                              sluice::Slots{[](int) { return Sum{}; }}};
#if MISUSE
    int batches = 1;
#else
    int batches[] = {1, 2, 3};
#endif
    for (const auto& sum : pipeline.run(batches))
        (void)sum.value;
}
