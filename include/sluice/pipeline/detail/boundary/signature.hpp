// What a stage's callable takes.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/backend/detail/stream_types.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/parameters.hpp>

namespace sluice::detail {

/// For what is refused where it is used.
template <class... Ts>
inline constexpr bool never = false;

template <class... Ts>
struct Types {
    static constexpr std::size_t count = sizeof...(Ts);
};

/// The parameters of a callable with one signature; a generic or overloaded one has none that are known.
template <class Function>
struct Signature {
    static constexpr bool known = false;
    using parameters = Types<>;
    using result = void;
};
template <class Result, class... Ps>
struct KnownSignature {
    static constexpr bool known = true;
    using parameters = Types<Ps...>;
    using result = std::remove_cvref_t<Result>;
};
template <class Result, class... Ps>
struct Signature<Result (*)(Ps...)> : KnownSignature<Result, Ps...> {};
template <class Result, class... Ps>
struct Signature<Result (*)(Ps...) noexcept> : KnownSignature<Result, Ps...> {};
template <class Member>
struct MemberSignature {
    static constexpr bool known = false;
    using parameters = Types<>;
    using result = void;
};
template <class Result, class Class, class... Ps>
struct MemberSignature<Result (Class::*)(Ps...)> : KnownSignature<Result, Ps...> {};
template <class Result, class Class, class... Ps>
struct MemberSignature<Result (Class::*)(Ps...) const> : KnownSignature<Result, Ps...> {};
template <class Result, class Class, class... Ps>
struct MemberSignature<Result (Class::*)(Ps...) noexcept> : KnownSignature<Result, Ps...> {};
template <class Result, class Class, class... Ps>
struct MemberSignature<Result (Class::*)(Ps...) const noexcept> : KnownSignature<Result, Ps...> {};
template <class Function>
requires requires { &Function::operator(); }
struct Signature<Function> : MemberSignature<decltype(&Function::operator())> {};

struct WithCallOperator {
    void operator()();
};
template <class Function>
struct BesideCallOperator : Function, WithCallOperator {};
/// Whether there is any call operator, generic or not, or that cannot be told.
template <class Function>
concept MayBeCallable = !std::is_class_v<Function> || std::is_final_v<Function> || !requires {
    &BesideCallOperator<Function>::operator();
};

/// What a parameter that is no stream asks for; `told`, where it is told something: what of these.
template <class Plain>
struct Asked {
    using type = Plain;
    static constexpr std::size_t window = 0;
    static constexpr bool in_place = false;
    static constexpr int told = std::is_same_v<Plain, Turn>   ? from_turn
                                : std::is_same_v<Plain, Lane> ? from_lane
                                                              : 0;
};
template <class T>
struct Asked<InPlace<T>> {
    using type = T;
    static constexpr std::size_t window = 0;
    static constexpr bool in_place = true;
    static constexpr int told = 0;
};
template <int Count, class T>
struct Asked<Last<Count, T>> {
    using type = T;
    static constexpr std::size_t window = static_cast<std::size_t>(Count);
    static constexpr bool in_place = false;
    static constexpr int told = 0;
};

/// Whether a parameter is a stream, and of which backend.
template <class Parameter>
struct StreamParameter {
    // Any other backend's reference to a stream, such as `cuda::stream_ref`.
    static constexpr bool is_stream = ForeignStreamRef<Parameter, typename DefaultBackend::NativeStream>;
    using backend = DefaultBackend;
};
template <class B>
struct StreamParameter<BasicStreamRef<B>> {
    static constexpr bool is_stream = true;
    using backend = B;
};
template <class Native>
requires requires { typename BackendOfNativeStream<Native>::type; }
struct StreamParameter<Native> {
    static constexpr bool is_stream = true;
    using backend = typename BackendOfNativeStream<Native>::type;
};

/// Whether a stream is among the parameters behind the first.
template <class Parameters>
inline constexpr bool takes_stream_late = false;
template <class First, class... Rest>
inline constexpr bool
    takes_stream_late<Types<First, Rest...>> = (StreamParameter<std::remove_cvref_t<Rest>>::is_stream || ...);

/// Whether the owner of a stream is among the parameters, or a pointer to one.
template <class T>
inline constexpr bool is_stream_owner = false;
template <class B>
inline constexpr bool is_stream_owner<BasicStream<B>> = true;
template <class Parameters>
inline constexpr bool takes_stream_owner = false;
template <class... Ps>
inline constexpr bool takes_stream_owner<Types<Ps...>> =
    (is_stream_owner<std::remove_cv_t<std::remove_pointer_t<std::remove_cvref_t<Ps>>>> || ...);

/// What a stage's callable takes, apart from its stream. A generic callable takes a stream of `DefaultBackend`.
template <class Parameters>
struct StageParameters {
    static constexpr bool takes_stream = false;
    using backend = Host;
    using inputs = Parameters;
};
template <class First, class... Rest>
requires StreamParameter<std::remove_cvref_t<First>>::is_stream struct StageParameters<
    Types<First, Rest...>> {
    static constexpr bool takes_stream = true;
    using backend = typename StreamParameter<std::remove_cvref_t<First>>::backend;
    using inputs = Types<Rest...>;
};

template <class Function>
struct CallableTraits : StageParameters<typename Signature<Function>::parameters> {
    static constexpr bool known = true;
};
template <class Function>
requires(!Signature<Function>::known) struct CallableTraits<Function> {
    static constexpr bool known = false;
    static constexpr bool takes_stream = true;
    using backend = DefaultBackend;
    using inputs = Types<>;
};

} // namespace sluice::detail
