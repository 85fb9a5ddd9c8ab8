// A function of each value that wants two.
// FIRST: sluice::ragged: the function must be callable as f(value)
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

void use(sluice::HostStreamRef stream, sluice::RaggedBatch<float, sluice::Host>& batch) {
#if MISUSE
    sluice::ragged::apply(
        stream, [](float value, float other) { return value + other; }, batch, batch);
#else
    sluice::ragged::apply(
        stream, [](float value) { return -value; }, batch, batch);
#endif
}
