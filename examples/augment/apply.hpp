/// \file
/// Applies a chain to a batch of images, on the processor; apply.cuh does so on a device.
///
/// Images that are read and images that are written may differ in type and layout. Nothing waits or allocates (on the
/// Host backend, a chain and arguments of up to 208 bytes; what is larger, a few operators more than the published
/// chain's, costs one allocation a call), so work can be captured, and each replay reads images, parameters and sample ids
/// that are in memory then. A sample's pixels depend on itself and its parameters alone: the same bits at any place in any
/// batch. Backends agree within 1e-5 of the range of values: which pixels are read is computed alike.
#pragma once

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
void apply_here(const Chain<Ops...>& chain, Images<In, sluice::Host> in,
                std::type_identity_t<ParameterSource<sluice::Host>> parameters,
                Images<Out, sluice::Host> out);

namespace detail {

/// Throws `sluice::Error` unless `out` is what `chain` makes of `in`, and there are parameters for all.
template <class C, class In, class Out, sluice::Backend B>
void require_fit(const C& chain, const Images<In, B>& in, const ParameterSource<B>& parameters,
                 const Images<Out, B>& out);

} // namespace detail

} // namespace augment

#include <augment/detail/apply_host.inl>
