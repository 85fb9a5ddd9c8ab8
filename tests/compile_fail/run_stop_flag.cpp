// A flag that would be copied, and never change.
// FIRST: sluice::Pipeline::run: what tells the loop to end is a std::stop_token, or is called as
#include <sluice/sluice.hpp>

#include <vector>

struct Sum {
    int value = 0;
};

void run() {
    sluice::Pipeline pipeline{sluice::Stages{sluice::Stage{"add", [](const int&, Sum&) {}}},
                              sluice::Slots{[](int) { return Sum{}; }}};
    std::vector<int> batches{1, 2, 3};
    bool stop = false;
#if MISUSE
    for (const auto& sum : pipeline.run(batches, stop))
#else
    for (const auto& sum : pipeline.run(batches, [&] { return stop; }))
#endif
        (void)sum.value;
    (void)stop;
}
