// Rows of floats for a batch of doubles.
// EXPECT: RaggedBatch<float,
// AT-MOST: 1 error
#include <sluice/ragged.hpp>
#include <sluice/sluice.hpp>

#if MISUSE
using Value = double;
#else
using Value = float;
#endif

void send(sluice::HostStreamRef stream, const sluice::RaggedPacker<float, sluice::Host>& packer,
          sluice::RaggedBatch<Value, sluice::Host>& batch) {
    packer.copy_to(stream, batch);
}
