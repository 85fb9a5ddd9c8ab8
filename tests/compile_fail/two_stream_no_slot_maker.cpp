// Two stages that exchange something, and nothing that makes it.
// EXPECT: sluice::Pipeline: a stage has an output, and no slot makers are given; name a slot maker for each stage's
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Images {};

void run() {
    sluice::Stage first{"first", [](sluice::HostStreamRef, const int&, Images&) {}};
    sluice::Stage last{"last", [](sluice::HostStreamRef, const Images&) {}};
#if MISUSE
    sluice::TwoStreamPipeline pipeline{first, last, {.schedule = sluice::Schedule::serial}};
#else
    sluice::TwoStreamPipeline pipeline{
        first, last, [](int) { return Images{}; }, {.schedule = sluice::Schedule::serial}};
#endif
    pipeline.submit(1);
}
