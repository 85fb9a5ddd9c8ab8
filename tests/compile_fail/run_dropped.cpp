// What run returns is dropped: nothing would run.
// EXPECT: nothing runs but for a loop over it
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#pragma GCC diagnostic error "-Wunused-result"

struct Sum {
    int value = 0;
};

void run(sluice::AnyPipeline<int, sluice::Host>& any) {
    sluice::Pipeline pipeline{sluice::Stages{sluice::Stage{"add", [](const int&, Sum&) {}}},
                              sluice::Slots{[](int) { return Sum{}; }}};
    int batches[] = {1, 2, 3};
#if MISUSE
    pipeline.run(batches);
    any.run<Sum>(batches);
#else
    for (const Sum& sum : pipeline.run(batches))
        (void)sum;
    for (const Sum& sum : any.run<Sum>(batches))
        (void)sum;
#endif
}
