// The elementwise operators on the Cuda backend.
#include <nn/elementwise/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_ELEMENTWISE(sluice::Cuda)
NN_INSTANTIATE_MAPS(sluice::Cuda, float)
NN_INSTANTIATE_MAPS(sluice::Cuda, Bfloat16)

} // namespace nn
