// The same of an AnyPipeline, whose caller takes the batch as constant.
// EXPECT: call wait() or stays(), or keep it
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#pragma GCC diagnostic error "-Wunused-result"

using Batch = sluice::PinnedBuffer<float, sluice::Host>;

void run(sluice::AnyPipeline<Batch, sluice::Host>& pipeline, const Batch& batch) {
#if MISUSE
    pipeline.submit(batch);
#else
    pipeline.submit(batch).stays();
#endif
    pipeline.finish();
}
