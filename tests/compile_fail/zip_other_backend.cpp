// A zip of sources for streams of different backends.
// EXPECT: both sources must be for streams of the same backend
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <cstddef>

/// The same as Host, and yet another backend.
struct Another : sluice::Host {};

#if MISUSE
using Theirs = Another;
#else
using Theirs = sluice::Host;
#endif

void run() {
    sluice::Source images{[](int) { return 0; }, [](std::size_t, int&) {},
                          sluice::SourceOptions<sluice::Host>{}};
    sluice::Source labels{[](int) { return 0.0f; }, [](std::size_t, float&) {},
                          sluice::SourceOptions<Theirs>{}};
    auto both = sluice::zip(images, labels);
    (void)both.filled();
}
