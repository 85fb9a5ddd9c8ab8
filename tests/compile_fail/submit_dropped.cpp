// What submit returns is dropped: it would wait, and nothing would overlap.
// EXPECT: call wait() or stays(), or keep it
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#pragma GCC diagnostic error "-Wunused-result"

struct Features {};
using Batch = sluice::PinnedBuffer<float, sluice::Host>;

void run(const Batch& batch) {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Batch&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
#if MISUSE
    pipeline.submit(batch);
#else
    pipeline.submit(batch).stays();
#endif
    sluice::Pipeline numbers{sluice::Stages{sluice::Stage{"only", [](sluice::HostStreamRef, int) {}}}};
    numbers.submit(3); // which may be reused at once
    numbers.finish();
    pipeline.finish();
}
