// Stages of one backend, and a source of another.
// EXPECT: the source is another backend's than the stages
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

/// The same as Host, and yet another backend.
struct Other : sluice::Host {};

#if MISUSE
using Owner = Other;
#else
using Owner = sluice::Host;
#endif

struct Features {};

void run() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
    sluice::Source source{[](int) { return 0; }, [](std::size_t, int&) {},
                          sluice::SourceOptions<Owner>{.batches = 2}};
    for (const auto& batch : source)
        pipeline.submit(batch);
    pipeline.finish();
}
