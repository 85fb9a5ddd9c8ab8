// Callables of any type behind one: std::function, of which a compiler makes thirteen functions for each type.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/backend/detail/shared.hpp>

namespace sluice::test {

/// Copies share what is called, or call a callable without state, such as a lambda that captures nothing.
template <class Signature>
class AnyCall;
template <class... Args>
class AnyCall<void(Args...)> {
public:
    AnyCall() noexcept {} // empty
    template <class F>
    requires(!std::is_same_v<F, AnyCall> && std::is_invocable_v<F&, Args...>) AnyCall(F call)
        : call_(&call_as<F>) {
        if constexpr (!is_stateless<F>)
            callable_ = detail::make_shared_value<F>(static_cast<F&&>(call));
    }

    explicit operator bool() const noexcept { return call_ != nullptr; }
    friend bool operator==(const AnyCall& call, std::nullptr_t) noexcept { return !call; }
    void operator()(Args... args) const { call_(callable_.get(), static_cast<Args>(args)...); }

private:
    template <class F>
    static constexpr bool is_stateless = std::is_empty_v<F>&& std::is_default_constructible_v<F>;
    template <class F>
    static void call_as(void* callable, Args... args) {
        if constexpr (is_stateless<F>)
            F{}(static_cast<Args>(args)...);
        else
            (*static_cast<F*>(callable))(static_cast<Args>(args)...);
    }

    detail::Shared<void> callable_;
    void (*call_)(void*, Args...) = nullptr;
};

} // namespace sluice::test
