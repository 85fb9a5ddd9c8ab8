/// \file
/// The box losses on the Host backend. The times show an order of magnitude.
#include "giou.hpp"

void bench::add_host_benchmarks() {
    using sluice::Host;
    const auto no_baseline = [](bool) { return NoBaseline{}; };
    for (const Variant variant :
         {Variant::concatenated, Variant::padded, Variant::fused, Variant::conditional, Variant::ragged}) {
        for (const bool backward : {false, true}) {
            add_giou<float, Host, nn::ArticleGiou>(
                std::string("host/float32/") + name_of(variant) + (backward ? "/both" : "/forward"),
                {variant, backward, false}, {.steps = 1, .bursts = 5, .repetitions = 3}, no_baseline);
        }
    }
}
