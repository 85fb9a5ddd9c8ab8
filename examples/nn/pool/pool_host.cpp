// The pools on the Host backend.
#include <nn/pool/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_POOL(sluice::Host, float)
NN_INSTANTIATE_POOL(sluice::Host, Half)

} // namespace nn
