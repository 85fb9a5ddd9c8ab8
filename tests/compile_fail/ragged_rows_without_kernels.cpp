// Operations on rows on a CUDA stream with the header of the Host backend alone.
// EXPECT: operations on rows need <sluice/ragged/rows.cuh>
// AT-MOST: 1 error
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/rows.hpp>

#if MISUSE
using Owner = sluice::Cuda;
#else
using Owner = sluice::Host;
#endif

void use(sluice::BasicStreamRef<Owner> stream, sluice::DeviceSpan<float, Owner> out,
         const sluice::RaggedBatch<float, Owner>& batch, sluice::RaggedWorkspace<Owner>& workspace) {
    sluice::ragged::sum(stream, out, batch);
    sluice::ragged::softmax(stream, out, batch);
    sluice::ragged::sort(stream, out, batch, workspace);
    sluice::ragged::apply_by_row(
        stream, [](float value, float of_row) { return value - of_row; }, out, batch, out);
}
