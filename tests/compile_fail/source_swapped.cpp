// What fills a slot before what makes it.
// FIRST: sluice::Source: a source is made of make(int slot), which makes a batch, of fill(std::size_t index, Batch& out)
// AT-MOST: 1 error
#include <sluice/sluice.hpp>

struct Slot {};

void run() {
    const auto make = [](int) { return Slot{}; };
    const auto fill = [](std::size_t, Slot&) {};
#if MISUSE
    sluice::Source source{fill, make, {.batches = 3}};
#else
    sluice::Source source{make, fill, {.batches = 3}};
#endif
}
