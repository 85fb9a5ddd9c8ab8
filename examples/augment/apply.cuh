/// \file
/// Applies a chain to a batch of images, on a device, in one kernel. See apply.hpp for the contract, and
/// detail/tiles.cuh, downscale.cuh and rotated_window.cuh for how.
#pragma once

#include <augment/apply.hpp>

namespace augment {

/// As on the processor, in the order of `stream`. Throws `sluice::Error` also for a launch that fails.
template <class... Ops, class In, class Out>
void apply(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, Images<In, sluice::Cuda> in,
           std::type_identity_t<ParameterSource<sluice::Cuda>> parameters, Images<Out, sluice::Cuda> out);

} // namespace augment

#include <augment/kernels/launch.inl>
