// What gives the newest batches, by a name that it keeps.
// FIRST: sluice::zip: a latest(...) that has a name is moved: zip(a, std::move(newest))
// AT-MOST: 2 errors
#include <utility>

#include <sluice/sluice.hpp>

void run() {
    sluice::Source frames{[](int) { return 0; }, [](std::size_t, int&) {}, {.batches = 1}};
    sluice::Source poses{[](int) { return 0.0; }, [](std::size_t, double&) {}, {.batches = 1}};
    auto newest = sluice::latest(poses);
#if MISUSE
    auto both = sluice::zip(frames, newest);
#else
    auto both = sluice::zip(frames, std::move(newest));
#endif
    (void)both;
}
