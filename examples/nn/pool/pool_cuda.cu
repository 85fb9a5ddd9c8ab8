// The pools on the Cuda backend.
#include <nn/pool/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_POOL(sluice::Cuda, float)
NN_INSTANTIATE_POOL(sluice::Cuda, Half)

} // namespace nn
