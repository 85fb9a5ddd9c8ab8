// Softmax cross-entropy on the Cuda backend.
#include <nn/losses/detail/cross_entropy.inl>

namespace nn {

NN_INSTANTIATE_CROSS_ENTROPY(sluice::Cuda)

} // namespace nn
