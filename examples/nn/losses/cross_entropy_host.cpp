// Softmax cross-entropy on the Host backend.
#include <nn/losses/detail/cross_entropy.inl>

namespace nn {

NN_INSTANTIATE_CROSS_ENTROPY(sluice::Host)

} // namespace nn
