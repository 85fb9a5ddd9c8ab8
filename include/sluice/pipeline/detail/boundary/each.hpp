/// \file
/// A value of each of several types. What a tuple would be, which takes a compiler four times as many functions.
#pragma once

#include <cstddef>
#include <utility>

namespace sluice::detail {

/// The value number `Index`: `static_cast<EachOne<Index, T>&>(each).value`.
template <std::size_t Index, class T>
struct EachOne {
    T value;
};
template <class Indices, class... Ts>
struct EachOf;
template <std::size_t... Is, class... Ts>
struct EachOf<std::index_sequence<Is...>, Ts...> : EachOne<Is, Ts>... {};
template <class... Ts>
using Each = EachOf<std::index_sequence_for<Ts...>, Ts...>;

} // namespace sluice::detail
