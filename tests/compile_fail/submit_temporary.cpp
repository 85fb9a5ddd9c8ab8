// A batch that owns its memory and is gone before the work that reads it has started.
// EXPECT: a temporary batch that owns memory would be gone before the stages read it; give it a name
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <vector>

struct Features {};

void run() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const std::vector<float>&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
#if MISUSE
    pipeline.submit(std::vector<float>(8));
#else
    const std::vector<float> batch(8);
    pipeline.submit(batch).wait();
#endif
    pipeline.finish();
}
