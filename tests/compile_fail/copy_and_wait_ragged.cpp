// A ragged batch where a buffer is expected.
// EXPECT: sluice::copy_and_wait: copies between buffers, spans and contiguous ranges, as in copy_and_wait(stream, to, from)
// AT-MOST: 1 error
#include <vector>

#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

void save(sluice::HostStreamRef stream, const sluice::RaggedBatch<float, sluice::Host>& source,
          std::vector<float>& target) {
#if MISUSE
    sluice::copy_and_wait(stream, target, source);
#else
    sluice::copy_and_wait(stream, target, source.values());
#endif
}
