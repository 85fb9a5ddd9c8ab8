// Gradient descent with momentum on the Host backend.
#include <nn/optimizer/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_SGD(sluice::Host)

} // namespace nn
