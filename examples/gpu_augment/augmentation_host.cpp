// The chains for digits on the CPU.
#include <gpu_augment/augmentation.hpp>

namespace augment {

using In = Images<const std::uint8_t, sluice::Host>;
using Parameters = ParameterSource<sluice::Host>;
using Out = Images<float, sluice::Host>;
template void apply(sluice::HostStreamRef, const gpu_augment::DigitChain&, In, Parameters, Out);
template void apply(sluice::HostStreamRef, const gpu_augment::PlainDigitChain&, In, Parameters, Out);
template void apply(const gpu_augment::DigitChain&, In, Parameters, Out);
template void apply(const gpu_augment::PlainDigitChain&, In, Parameters, Out);

} // namespace augment
