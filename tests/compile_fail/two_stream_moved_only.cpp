// A stage whose callable can only be moved, given by its name.
// FIRST: sluice::TwoStreamPipeline: what can only be moved, as a stage with such a callable, is moved here
#include <sluice/sluice.hpp>

#include <memory>
#include <utility>

void run() {
    struct Slot {};
    auto own = std::make_unique<int>(1);
    sluice::Stage first{"first", [own = std::move(own)](sluice::HostStreamRef, const int&, Slot&) {}};
    sluice::Stage second{"second", [](sluice::HostStreamRef, const Slot&) {}};
    const auto make = [](int) { return Slot{}; };
#if MISUSE
    sluice::TwoStreamPipeline pipeline{first, second, make};
#else
    sluice::TwoStreamPipeline pipeline{std::move(first), second, make, {.slots = 3}};
#endif
}
