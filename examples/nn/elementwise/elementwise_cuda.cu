// The operators on the Cuda backend.
#include <nn/elementwise/for_each.cuh>

#include <nn/elementwise/detail/elementwise.inl>
#include <nn/elementwise/detail/maps.inl>
#include <nn/elementwise/detail/pixels.inl>
#include <nn/elementwise/detail/sums.inl>
#include <nn/losses/detail/cross_entropy.inl>

namespace nn {

using OperatorBackend = sluice::Cuda;

} // namespace nn

#include <nn/elementwise/detail/instantiate.hpp>
#include <nn/elementwise/detail/instantiate_maps.hpp>
