// A batch that owns its memory and is gone before the work that reads it has started, given to an AnyPipeline.
// EXPECT: a temporary batch that owns memory would be gone before the stages read it; give it a name
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <vector>

using Batch = std::vector<float>;
struct Features {};

void run() {
    sluice::AnyPipeline<Batch, sluice::Host> pipeline{
        sluice::Stages{sluice::Stage{"encode", [](sluice::HostStreamRef, const Batch&, Features&) {}},
                       sluice::Stage{"train", [](sluice::HostStreamRef, Features&) {}}},
        sluice::Slots{[](int) { return Features{}; }}};
    const Batch batch(8);
#if MISUSE
    pipeline.submit(Batch(8));
#else
    pipeline.submit(batch).wait();
#endif
    pipeline.finish();
}
