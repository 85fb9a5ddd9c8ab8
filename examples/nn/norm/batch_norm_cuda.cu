// Batch normalisation on the Cuda backend.
#include <nn/norm/detail/instantiate.hpp>

namespace nn {

NN_INSTANTIATE_BATCH_NORM_BACKEND(sluice::Cuda)

} // namespace nn
