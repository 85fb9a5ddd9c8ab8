// A fill that returns a number, which would never end the source.
// EXPECT: fill must return nothing, or bool, of which false ends the source
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

#include <cstddef>

void run() {
#if MISUSE
    const auto fill = [](std::size_t index, int& out) { return out = static_cast<int>(index); };
#else
    const auto fill = [](std::size_t index, int& out) {
        out = static_cast<int>(index);
        return index < 3;
    };
#endif
    sluice::Source source{[](int) { return 0; }, fill, sluice::SourceOptions<sluice::Host>{}};
    for (const auto& batch : source)
        (void)*batch;
}
