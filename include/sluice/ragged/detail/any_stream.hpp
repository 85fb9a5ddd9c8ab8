/// \file
/// The streams that operations on ragged batches take.
#pragma once

#include <type_traits>

#include <sluice/backend/stream.hpp>

namespace sluice::ragged {

namespace detail {

template <class S>
struct StreamBackend {};
template <Backend B>
struct StreamBackend<BasicStreamRef<B>> {
    using type = B;
};
template <Backend B>
struct StreamBackend<BasicStream<B>> {
    using type = B;
};
template <>
struct StreamBackend<Host::NativeStream> {
    using type = Host;
};
#if SLUICE_HAS_CUDA
template <>
struct StreamBackend<Cuda::NativeStream> {
    using type = Cuda;
};
template <sluice::detail::ForeignStreamRef<Cuda::NativeStream> S>
struct StreamBackend<S> {
    using type = Cuda;
};
#endif

} // namespace detail

/// A stream: owned, referred to, a backend's own handle, or a `cuda::stream_ref`.
template <class S>
concept AnyStream = requires {
    typename detail::StreamBackend<S>::type;
};

/// The backend of a stream: what an operation's other arguments must belong to.
template <AnyStream S>
using BackendOf = typename detail::StreamBackend<S>::type;

namespace detail {

template <AnyStream S>
BasicStreamRef<BackendOf<S>> ref_of(const S& stream) noexcept {
    return BasicStreamRef<BackendOf<S>>(stream);
}

/// Refuses, with a readable message, streams whose operations on rows have not been included.
template <Backend B>
void require_kernels() {
    static_assert(std::is_void_v<B>,
                  "sluice: operations on rows need <sluice/ragged/rows.cuh>, and a CUDA compiler, for "
                  "CUDA streams");
}

} // namespace detail

} // namespace sluice::ragged
