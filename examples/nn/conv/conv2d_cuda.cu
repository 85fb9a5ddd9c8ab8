// The patches of a convolution on the Cuda backend.
#include <nn/conv/detail/conv_patches.hpp>

namespace nn {

NN_INSTANTIATE_CONV_PATCHES(sluice::Cuda)

} // namespace nn
