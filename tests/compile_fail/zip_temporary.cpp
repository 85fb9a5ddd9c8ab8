// A zip of a zip that has no name would refer to what is gone.
// EXPECT: a source is a temporary, and must outlive what is zipped: give it a name
// AT-MOST: 2 errors
#include <sluice/sluice.hpp>

#include <cstddef>

void run() {
    sluice::Source images{[](int) { return 0; }, [](std::size_t, int&) {},
                          sluice::SourceOptions<sluice::Host>{}};
    sluice::Source poses{[](int) { return 0.0f; }, [](std::size_t, float&) {},
                         sluice::SourceOptions<sluice::Host>{}};
    sluice::Source labels{[](int) { return 0; }, [](std::size_t, int&) {},
                          sluice::SourceOptions<sluice::Host>{}};
#if MISUSE
    auto three = sluice::zip(sluice::zip(images, poses), labels);
#else
    auto two = sluice::zip(images, sluice::latest(poses));
    auto three = sluice::zip(two, labels);
    (void)three.next();
#endif
}
