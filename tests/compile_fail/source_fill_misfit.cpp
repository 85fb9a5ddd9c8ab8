// A fill that does not take what it is given.
// EXPECT: fill must be callable as fill(std::size_t index, Batch& out)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <cstddef>

void run() {
#if MISUSE
    const auto fill = [](int& out) { out = 1; };
#else
    const auto fill = [](std::size_t, int& out) { out = 1; };
#endif
    sluice::Source source{[](int) { return 0; }, fill, sluice::SourceOptions<sluice::Host>{.batches = 2}};
    for (const auto& batch : source)
        (void)*batch;
}
