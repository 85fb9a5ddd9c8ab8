// Whether a batch in pinned memory was taken, of a temporary handle: it would wait for the batch.
// EXPECT: use of deleted function
// EXPECT: sluice::TriedSubmit::operator bool() const &&
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Batch {
    sluice::PinnedBuffer<int, sluice::Host> values{1};
};

void take(sluice::AnyPipeline<Batch, sluice::Host>& pipeline, const Batch& batch, sluice::BatchRead& kept) {
#if MISUSE
    if (pipeline.try_submit(batch))
        kept = {};
#else
    if (auto read = pipeline.try_submit(batch))
        kept = std::move(*read);
#endif
}
