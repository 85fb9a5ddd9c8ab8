// The patches of a convolution on the Host backend.
#include <nn/conv/detail/conv_patches.hpp>

namespace nn {

NN_INSTANTIATE_CONV_PATCHES(sluice::Host)

} // namespace nn
