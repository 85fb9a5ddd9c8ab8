/// \file
/// What a checked backend makes of callables.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <sluice/backend/detail/checked/interface.hpp>

namespace sluice::detail {

/// A callable of a checked stream, with the number by which the checker knows it. What it owns goes in the stream's order, too.
template <class F>
class CheckedCall {
public:
    using Wrapped = F; // For the Host backend, which compares callables.

    /// `quiet`: whether nothing may be thrown from there.
    template <class Callable>
    CheckedCall(Callable&& callable, checked::Token token, bool quiet = false)
        : kept_(std::forward<Callable>(callable)), token_(token), is_quiet_(quiet),
          is_own_(token != checked::CallerScope::current() && token < checked::CallerScope::captured) {}
    CheckedCall(CheckedCall&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
        : kept_(std::move(other.kept_)), token_(other.token_), is_quiet_(other.is_quiet_),
          is_own_(std::exchange(other.is_own_, false)) {}
    CheckedCall& operator=(CheckedCall&&) = delete;
    ~CheckedCall() {
        if (!is_own_) {
            std::destroy_at(&kept_);
            return;
        }
        {
            const checked::CallerScope scope(token_);
            std::destroy_at(&kept_);
        }
        checked::call_ended(token_, !std::is_trivially_destructible_v<F>);
    }
    checked::Token token() const noexcept { return token_; }
    void operator()() {
        const bool captured =
            token_ > checked::CallerScope::captured && token_ != checked::CallerScope::unknown;
        // The stream that it was captured on, which would fail on a device, may have gone.
        const checked::QuietScope quiet(is_quiet_ || captured);
        if (captured) {
            const checked::CallScope scope(checked::call_begun(token_));
            kept_();
        } else {
            const checked::TokenScope scope(token_);
            kept_();
        }
    }

private:
    union {
        F kept_; // It goes before the rest does.
    };
    checked::Token token_;
    bool is_quiet_;
    bool is_own_; // and no longer that of the one that this was moved to
};

} // namespace sluice::detail
