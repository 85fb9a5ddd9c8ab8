// A readback that is not told how many values a result has.
// FIRST: sluice::Readback: the largest number of values of a result comes first
#include <sluice/sluice.hpp>

#include <cstddef>
#include <span>

void run() {
    const auto handler = [](std::size_t, std::span<const float>) {};
#if MISUSE
    sluice::Readback<float, sluice::Host> readback{handler};
#else
    sluice::Readback<float, sluice::Host> readback{1, handler};
#endif
}
