// The elementwise operators on the Cuda backend.
#include <nn/elementwise/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_ELEMENTWISE(sluice::Cuda)
NN_INSTANTIATE_MAPS(sluice::Cuda, float)
NN_INSTANTIATE_MAPS(sluice::Cuda, Bfloat16)
NN_INSTANTIATE_PAD_CHANNELS(sluice::Cuda, float, float)
NN_INSTANTIATE_PAD_CHANNELS(sluice::Cuda, Half, float)
NN_INSTANTIATE_PAD_CHANNELS(sluice::Cuda, Half, Half)

} // namespace nn
