// A fill of a ragged batch, counts and offsets included.
// EXPECT: sluice::fill: fills device memory only
// AT-MOST: 1 error
#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

void clear(sluice::HostStreamRef stream, sluice::RaggedBatch<float, sluice::Host>& batch) {
#if MISUSE
    sluice::fill(stream, batch, 0);
#else
    sluice::fill(stream, batch.values(), 0);
#endif
}
