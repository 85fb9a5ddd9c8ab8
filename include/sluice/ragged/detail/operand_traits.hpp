// What the concepts of operands.hpp look at.
#pragma once

#include <concepts>

#include <sluice/backend/stream.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice::ragged::detail {

/// The backend of a stream, as `type`; none of anything else.
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
/// What the runtime of `B` calls a stream, or a foreign reference to one.
template <class S, class B>
concept NativeStreamOf = std::same_as<S, typename B::NativeStream> ||
    sluice::detail::ForeignStreamRef<S, typename B::NativeStream>;
template <NativeStreamOf<DefaultBackend> S>
struct StreamBackend<S> {
    using type = DefaultBackend;
};
template <>
struct StreamBackend<Host::NativeStream> {
    using type = Host;
};

template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<RaggedView<T>> = true;

} // namespace sluice::ragged::detail
