// A function of each value that gives nothing.
// FIRST: sluice::ragged: what the function returns must convert to the elements of `out`
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

void use(sluice::HostStreamRef stream, sluice::RaggedBatch<float, sluice::Host>& batch) {
#if MISUSE
    sluice::ragged::apply(
        stream, [](float) {}, batch, batch);
#else
    sluice::ragged::apply(
        stream, [](float value) { return value; }, batch, batch);
#endif
}
