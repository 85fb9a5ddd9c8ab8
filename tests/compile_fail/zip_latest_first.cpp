// The first source of a zip says how many steps there are.
// EXPECT: latest(...) comes second; the first source says how many steps there are
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <cstddef>

void run() {
    sluice::Source images{[](int) { return 0; }, [](std::size_t, int&) {},
                          sluice::SourceOptions<sluice::Host>{}};
    sluice::Source poses{[](int) { return 0.0f; }, [](std::size_t, float&) {},
                         sluice::SourceOptions<sluice::Host>{}};
#if MISUSE
    sluice::zip(sluice::latest(poses), images);
#else
    auto both = sluice::zip(images, sluice::latest(poses));
    (void)both.next();
#endif
}
