// Gradient descent with momentum on the Cuda backend.
#include <nn/optimizer/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_SGD(sluice::Cuda)

} // namespace nn
