// The sampler of another epoch is dropped: each epoch would have the same order.
// EXPECT: this sampler stays as it is; use the one that is given
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#pragma GCC diagnostic error "-Wunused-result"

std::size_t batches(sluice::Sampler sampler) {
#if MISUSE
    sampler.of_epoch(1);
#else
    sampler = sampler.of_epoch(1);
#endif
    return sampler.batches();
}
