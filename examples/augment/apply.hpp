/// \file
/// Applies a chain to a batch of images. On the CPU here; a .cu file that applies a chain of its own on a device includes
/// apply.cuh.
///
/// The types and layouts of input and output may differ. No call waits, and none allocates (on the Host backend, a chain
/// and arguments of up to 208 bytes; larger ones cost one allocation a call), so a call can be captured. Each replay reads
/// the images, parameters and sample ids that are in memory then. A sample's pixels depend on the sample and its parameters
/// alone: they have the same bits at any index in any batch. Backends read the same pixels and agree within 1e-5 of the
/// range of values.
#pragma once

#include <type_traits>

#include <augment/chain.hpp>
#include <sluice/backend/stream.hpp>

namespace augment {

/// `out[i] = chain(in[i], parameters[i])` in the order of `stream`. Throws `sluice::Error` where the shapes do not fit, and
/// for parameters of another count than the images'. `out` may not overlap `in`.
template <class... Ops, class In, class Out>
void apply(sluice::HostStreamRef stream, const Chain<Ops...>& chain, Images<In, sluice::Host> in,
           std::type_identity_t<ParameterSource<sluice::Host>> parameters, Images<Out, sluice::Host> out);

/// The same at once, on the calling thread: for the workers of a source, each with images of its own.
template <class... Ops, class In, class Out>
void apply(const Chain<Ops...>& chain, Images<In, sluice::Host> in,
           std::type_identity_t<ParameterSource<sluice::Host>> parameters, Images<Out, sluice::Host> out);

#if SLUICE_HAS_CUDA
/// The same on a device, in one kernel. apply.cuh defines it; without that, only instantiations that are compiled elsewhere
/// can be called, such as those of published.hpp. Throws `sluice::Error` also for a launch that fails.
template <class... Ops, class In, class Out>
void apply(sluice::CudaStreamRef stream, const Chain<Ops...>& chain, Images<In, sluice::Cuda> in,
           std::type_identity_t<ParameterSource<sluice::Cuda>> parameters, Images<Out, sluice::Cuda> out);
#endif

namespace detail {

/// Throws `sluice::Error` unless `out` is what `chain` makes of `in`, and there are parameters for all.
template <class C, class In, class Out, sluice::Backend B>
void require_fit(const C& chain, const Images<In, B>& in, const ParameterSource<B>& parameters,
                 const Images<Out, B>& out);

} // namespace detail

} // namespace augment

#include <augment/detail/apply_host.inl>
