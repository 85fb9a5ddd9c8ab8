// The published chain on a GPU.
#include <augment/apply.cuh>
#include <augment/published.hpp>

namespace augment {

AUGMENT_PUBLISHED_APPLY(sluice::CudaStreamRef, sluice::Cuda, float);
AUGMENT_PUBLISHED_APPLY(sluice::CudaStreamRef, sluice::Cuda, nn::Half);

} // namespace augment
