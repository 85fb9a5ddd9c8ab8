// A source's batch that is copied with its slot instead of as what it is.
// EXPECT: deleted
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <cstddef>
#include <vector>

using Batch = std::vector<float>;

void run() {
    sluice::Source source{[](int) { return Batch(8); }, [](std::size_t, Batch&) {},
                          sluice::SourceOptions<sluice::Host>{.batches = 2}};
    const auto batch = source.next();
#if MISUSE
    const auto copy = *batch;
#else
    const Batch copy = *batch;
#endif
    (void)copy;
}
