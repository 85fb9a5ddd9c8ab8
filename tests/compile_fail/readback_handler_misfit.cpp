// A handler that takes one value.
// FIRST: sluice::Readback: the handler must be callable as handler(std::size_t index, std::span<const T> values)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
#if MISUSE
    sluice::Readback<float> losses{1, [](float) {}};
#else
    sluice::Readback<float> losses{1, [](std::size_t, std::span<const float>) {}};
#endif
}
