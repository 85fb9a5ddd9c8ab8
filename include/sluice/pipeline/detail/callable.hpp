/// \file
/// Which backend a stage's callable is written for.
#pragma once

#include <type_traits>

#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// The first parameter of a callable with one signature; void for a generic one.
template <class F>
struct FirstParameter {
    using type = void;
};
template <class R, class P, class... Rest>
struct FirstParameter<R (*)(P, Rest...)> {
    using type = std::remove_cvref_t<P>;
};
template <class R, class P, class... Rest>
struct FirstParameter<R (*)(P, Rest...) noexcept> {
    using type = std::remove_cvref_t<P>;
};
template <class M>
struct FirstParameterOfMember {
    using type = void;
};
template <class R, class C, class P, class... Rest>
struct FirstParameterOfMember<R (C::*)(P, Rest...)> {
    using type = std::remove_cvref_t<P>;
};
template <class R, class C, class P, class... Rest>
struct FirstParameterOfMember<R (C::*)(P, Rest...) const> {
    using type = std::remove_cvref_t<P>;
};
template <class R, class C, class P, class... Rest>
struct FirstParameterOfMember<R (C::*)(P, Rest...) noexcept> {
    using type = std::remove_cvref_t<P>;
};
template <class R, class C, class P, class... Rest>
struct FirstParameterOfMember<R (C::*)(P, Rest...) const noexcept> {
    using type = std::remove_cvref_t<P>;
};
template <class F>
requires requires { &F::operator(); }
struct FirstParameter<F> : FirstParameterOfMember<decltype(&F::operator())> {};

template <class Parameter>
struct BackendOfParameter {
    using type = DefaultBackend;
};
template <class B>
struct BackendOfParameter<BasicStreamRef<B>> {
    using type = B;
};
template <>
struct BackendOfParameter<host::Queue*> {
    using type = Host;
};
#if SLUICE_HAS_CUDA
template <>
struct BackendOfParameter<cudaStream_t> {
    using type = Cuda;
};
#endif

/// The backend of the stream that `F` takes first; the default one where `F` is generic.
template <class F>
using BackendOf = typename BackendOfParameter<typename FirstParameter<std::decay_t<F>>::type>::type;

} // namespace sluice::detail
