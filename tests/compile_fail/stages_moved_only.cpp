// A stage whose callable can only be moved, given by its name.
// FIRST: sluice::Stages: a stage whose callable can only be moved is moved here
#include <sluice/sluice.hpp>

#include <memory>
#include <utility>

void run() {
    auto own = std::make_unique<int>(1);
    sluice::Stage stage{"own", [own = std::move(own)](sluice::HostStreamRef, const int&) {}};
#if MISUSE
    const sluice::Stages stages{stage};
#else
    const sluice::Stages stages{std::move(stage)};
#endif
    (void)stages;
}
