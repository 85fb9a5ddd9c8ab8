// A result that holds other elements than the operation gives.
// FIRST: sluice::ragged: the elements of `out` are of another type
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

void use(sluice::HostStreamRef stream, sluice::DeviceBuffer<double, sluice::Host>& doubles,
         sluice::DeviceBuffer<float, sluice::Host>& floats, sluice::RaggedBatch<float, sluice::Host>& batch) {
    (void)doubles, (void)floats;
#if MISUSE
    sluice::ragged::softmax(stream, doubles, batch);
#else
    sluice::ragged::softmax(stream, floats, batch);
#endif
}
