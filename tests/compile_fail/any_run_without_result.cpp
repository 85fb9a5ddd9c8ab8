// Results of a pipeline whose type does not say what they are.
// FIRST: sluice::AnyPipeline::run: name the type of the last stage
#include <sluice/sluice.hpp>

#include <vector>

struct Sum {
    int value = 0;
};

void run() {
    sluice::AnyPipeline<int, sluice::Host> pipeline{
        sluice::Stages{sluice::Stage{"add", [](const int&, Sum&) {}}},
        sluice::Slots{[](int) { return Sum{}; }}};
    std::vector<int> batches{1, 2, 3};
#if MISUSE
    for (const auto& sum : pipeline.run(batches))
#else
    for (const auto& sum : pipeline.run<Sum>(batches))
#endif
        (void)sum.value;
}
