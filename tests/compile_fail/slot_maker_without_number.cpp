// A slot maker that does not take the slot's number.
// EXPECT: a slot maker must be callable as make(int slot), and return what the two stages exchange
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Features {};

void run() {
    sluice::Stage encode{"encode", [](sluice::HostStreamRef, const int&, Features&) {}};
    sluice::Stage train{"train", [](sluice::HostStreamRef, Features&) {}};
#if MISUSE
    sluice::TwoStreamPipeline pipeline{encode, train, [] { return Features{}; }};
#else
    sluice::TwoStreamPipeline pipeline{encode, train, [](int) { return Features{}; }};
#endif
    const int batch = 1;
    pipeline.submit(batch);
    pipeline.finish();
}
