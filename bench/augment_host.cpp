/// \file
/// Augmentation on the Host backend. The times show an order of magnitude.
#include "augment.hpp"

void bench::add_host_benchmarks() {
    using sluice::Host;
    constexpr int images = 4;
    const auto add = [](const char* name, const auto& chain) {
        using Chain = std::remove_cvref_t<decltype(chain)>;
        add_timed(
            "host/batch:" + std::to_string(images) + "/" + name, {.steps = 1, .bursts = 5, .repetitions = 3},
            Host::counts(), [chain] { return AugmentSubject<Host, float, Chain>(images, chain); },
            [] { return NoBaseline{}; });
    };
    for_each_operator(add);
    add("published", augment::published_chain());
}
