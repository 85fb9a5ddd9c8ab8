#include <gpu_augment/chains.hpp>

#include <augment/apply.cuh>

namespace gpu_augment {

template <sluice::Backend B, class Chain>
void apply_digits(sluice::BasicStreamRef<B> stream, const Chain& chain,
                  augment::Images<const std::uint8_t, B> in, const augment::ParameterSource<B>& parameters,
                  augment::Images<float, B> out) {
    augment::apply(stream, chain, in, parameters, out);
}

using In = augment::Images<const std::uint8_t, sluice::Cuda>;
using Parameters = augment::ParameterSource<sluice::Cuda>;
using Out = augment::Images<float, sluice::Cuda>;
template void apply_digits(sluice::StreamRef, const DigitChain&, In, const Parameters&, Out);
template void apply_digits(sluice::StreamRef, const PlainDigitChain&, In, const Parameters&, Out);

} // namespace gpu_augment
