// A batch of another type than the first stage takes.
// EXPECT: sluice::Pipeline: a stage's callable must take (stream, const Batch&, const In&..., Out&): the batch that is submitted
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};
struct Labels {};
struct Features {};

void run(const Images& images, const Labels& labels) {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const Images&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
#if MISUSE
    pipeline.submit(labels);
#else
    pipeline.submit(images);
#endif
    (void)images;
    (void)labels;
}
