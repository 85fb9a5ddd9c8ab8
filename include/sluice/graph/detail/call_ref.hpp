// Calls whose type no longer matters, so that what makes them is compiled once.
#pragma once

#include <concepts>
#include <type_traits>

namespace sluice::detail {

/// Whether `F` is something to call other than a reference of the type `Ref` itself.
template <class F, class Ref, class R, class... Args>
concept CallableBeside = !std::same_as<std::remove_cvref_t<F>, Ref> && std::is_invocable_r_v<R, F&, Args...>;

/// Refers to something to call, without owning it. Work comes in as many types as there are lambdas, and what captures it is
/// long: through this, it is compiled once for a backend.
template <class Signature>
class CallRef;
template <class R, class... Args>
class CallRef<R(Args...)> {
public:
    template <CallableBeside<CallRef, R, Args...> F>
    CallRef(F&& call) noexcept : object_(address_of(call)), call_(&call_as<std::remove_reference_t<F>>) {}

    R operator()(Args... args) const { return call_(object_, args...); }

private:
    template <class F>
    static void* address_of(F& call) noexcept {
        if constexpr (std::is_function_v<F>)
            return reinterpret_cast<void*>(&call);
        else
            return const_cast<void*>(static_cast<const void*>(__builtin_addressof(call)));
    }
    template <class F>
    static R call_as(void* object, Args... args) {
        if constexpr (std::is_function_v<F>)
            return static_cast<R>(reinterpret_cast<F*>(object)(args...));
        else
            return static_cast<R>((*static_cast<F*>(object))(args...));
    }

    void* object_;
    R (*call_)(void*, Args...);
};

} // namespace sluice::detail
