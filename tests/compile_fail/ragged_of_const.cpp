// Rows that nothing could be written to.
// FIRST: sluice::RaggedBatch: values must not be const
#include <sluice/ragged/ragged_batch.hpp>

void use() {
#if MISUSE
    const sluice::RaggedBatch<const float, sluice::Host> batch({1, 1});
#else
    const sluice::RaggedBatch<float, sluice::Host> batch({1, 1});
#endif
}
