// A source that would be gone before the loop over its results.
// FIRST: sluice::AnyPipeline::run: the source is a temporary, and must outlive the loop
#include <sluice/sluice.hpp>

#include <vector>

struct Sum {
    int value = 0;
};

void run(sluice::AnyPipeline<int, sluice::Host>& pipeline) {
    std::vector<int> batches{1, 2, 3};
#if MISUSE
    for (const auto& sum : pipeline.run<Sum>(std::vector<int>{1, 2, 3}))
#else
    for (const auto& sum : pipeline.run<Sum>(batches))
#endif
        (void)sum.value;
    (void)batches;
}
