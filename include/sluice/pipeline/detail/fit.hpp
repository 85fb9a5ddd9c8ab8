/// \file
/// Whether stages' callables and slot makers fit their places, said in one line.
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// Refuses, with a readable message, a callable that cannot be called in place `Index` of `Count` stages.
template <std::size_t Index, std::size_t Count, class F, class Stream, class... Exchanged>
constexpr bool check_fit() {
    constexpr bool fits = std::invocable<F&, Stream, Exchanged...>;
    if constexpr (Count == 1) {
        static_assert(fits, "sluice::Pipeline: the only stage's callable must take (stream, const Batch&)");
    } else if constexpr (Index == 0) {
        static_assert(
            fits,
            "sluice::Pipeline: the first stage's callable must take (stream, const Batch&, Out&), where Out "
            "is what the first slot maker returns");
    } else if constexpr (Index + 1 < Count) {
        static_assert(
            fits,
            "sluice::Pipeline: a middle stage's callable must take (stream, In&, Out&), where In and Out are "
            "what the slot makers to its left and right return");
    } else {
        static_assert(
            fits,
            "sluice::Pipeline: the last stage's callable must take (stream, In&), where In is what the last "
            "slot maker returns");
    }
    return fits;
}

/// What a slot maker makes; refuses, with a readable message, one that makes nothing.
template <class Maker>
struct SlotMadeBy {
    static constexpr bool makes = requires(Maker & make) { requires !std::is_void_v<decltype(make(0))>; };
    static_assert(
        makes, "sluice::Pipeline: a slot maker must be callable as make(int slot), and return what the two "
               "stages exchange");
    using type =
        typename std::conditional_t<makes, std::invoke_result<Maker&, int>, std::type_identity<int>>::type;
};

} // namespace sluice::detail
