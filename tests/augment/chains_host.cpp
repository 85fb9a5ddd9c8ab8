// The tests' chains on the Host backend.
#include <augment/apply.hpp>

#include "augment/chains_bodies.hpp"

// gpu_augment's own translation unit has it in the program.
template void augment::apply(sluice::HostStreamRef, const gpu_augment::PlainDigitChain&,
                             augment::Images<const std::uint8_t, sluice::Host>,
                             augment::ParameterSource<sluice::Host>, augment::Images<float, sluice::Host>);
