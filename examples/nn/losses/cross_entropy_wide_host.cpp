// Softmax cross-entropy over many classes on the Host backend.
#include <nn/losses/detail/cross_entropy_wide.hpp>

namespace nn {

NN_INSTANTIATE_CROSS_ENTROPY_WIDE(sluice::Host)

} // namespace nn
