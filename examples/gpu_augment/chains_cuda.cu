#include <gpu_augment/chains.hpp>

#include <augment/apply.cuh>

namespace augment {

using In = Images<const std::uint8_t, sluice::Cuda>;
using Parameters = ParameterSource<sluice::Cuda>;
using Out = Images<float, sluice::Cuda>;
template void apply(sluice::CudaStreamRef, const gpu_augment::DigitChain&, In, Parameters, Out);
template void apply(sluice::CudaStreamRef, const gpu_augment::PlainDigitChain&, In, Parameters, Out);

} // namespace augment
