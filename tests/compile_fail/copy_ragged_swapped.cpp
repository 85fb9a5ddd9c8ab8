// A ragged batch where a buffer is expected, and source and destination the wrong way round.
// EXPECT: sluice::copy: copies between buffers and spans, as in copy(stream, to, from); of a RaggedBatch give its block()
// AT-MOST: 1 error
#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

void save(sluice::HostStreamRef stream, const sluice::RaggedBatch<float, sluice::Host>& source,
          sluice::PinnedBuffer<float, sluice::Host>& target) {
#if MISUSE
    sluice::copy(stream, source, target);
#else
    sluice::copy(stream, target, source.values());
#endif
}
