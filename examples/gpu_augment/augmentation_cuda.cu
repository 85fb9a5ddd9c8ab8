// The chains for digits on a GPU.
#include <augment/apply.cuh>
#include <gpu_augment/augmentation.hpp>

namespace augment {

using In = Images<const std::uint8_t, sluice::Cuda>;
using Parameters = ParameterSource<sluice::Cuda>;
using Out = Images<float, sluice::Cuda>;
template void apply(sluice::CudaStreamRef, const gpu_augment::DigitChain&, In, Parameters, Out);
template void apply(sluice::CudaStreamRef, const gpu_augment::PlainDigitChain&, In, Parameters, Out);

} // namespace augment
