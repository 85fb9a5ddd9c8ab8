// The operators on the Cuda backend.
#include <nn/operators/for_each.cuh>

#include <nn/operators/bodies/elementwise.hpp>
#include <nn/operators/bodies/loss.hpp>
#include <nn/operators/bodies/maps.hpp>
#include <nn/operators/bodies/pixels.hpp>
#include <nn/operators/bodies/sums.hpp>

namespace nn {

using OperatorBackend = sluice::Cuda;

} // namespace nn

#include <nn/operators/bodies/instantiate.hpp>
#include <nn/operators/bodies/instantiate_maps.hpp>
