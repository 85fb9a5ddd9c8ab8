/// \file
/// Sums over ranks on the processor, in the order of the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/collective/detail/call.hpp>

namespace sluice::detail {

/// Calls `work(T{})` with the type of `element`.
template <class Work>
void with_element(CollectiveElement element, Work&& work) {
    switch (element) {
    case CollectiveElement::int8:
        return work(std::int8_t{});
    case CollectiveElement::uint8:
        return work(std::uint8_t{});
    case CollectiveElement::int32:
        return work(std::int32_t{});
    case CollectiveElement::uint32:
        return work(std::uint32_t{});
    case CollectiveElement::int64:
        return work(std::int64_t{});
    case CollectiveElement::uint64:
        return work(std::uint64_t{});
    case CollectiveElement::float32:
        return work(float{});
    case CollectiveElement::float64:
        return work(double{});
    }
}

template <class T>
T reduced(T a, T b, Reduction reduction) noexcept {
    if (reduction == Reduction::minimum)
        return b < a ? b : a;
    if (reduction == Reduction::maximum)
        return a < b ? b : a;
    if constexpr (std::is_integral_v<T>) { // wraps around, as devices do
        using Unsigned = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    } else {
        return a + b;
    }
}

/// Elements that are reduced at a time, so that no rank's memory is written before all ranks' has been read.
inline constexpr std::size_t reduce_block = 512;

/// `to(i)[begin … end)` of all `outs` receivers becomes the reduction over all ranks of `from(rank)[begin … end)`. A
/// receiver may be one of the ranks' memory. Blocks are small, and each is complete before it is written.
template <class T, class From, class To>
void reduce_range(std::size_t begin, std::size_t end, int ranks, Reduction reduction, From&& from, int outs,
                  To&& to) {
    T block[reduce_block];
    for (std::size_t at = begin; at < end; at += reduce_block) {
        const std::size_t count = end - at < reduce_block ? end - at : reduce_block;
        const T* const first = from(0);
        for (std::size_t i = 0; i < count; ++i)
            block[i] = first[at + i];
        for (int rank = 1; rank < ranks; ++rank) {
            const T* const next = from(rank);
            for (std::size_t i = 0; i < count; ++i)
                block[i] = reduced(block[i], next[at + i], reduction);
        }
        if constexpr (std::is_floating_point_v<T>) {
            if (reduction == Reduction::average) {
                for (std::size_t i = 0; i < count; ++i)
                    block[i] /= static_cast<T>(ranks);
            }
        }
        for (int out = 0; out < outs; ++out) {
            T* const receiver = to(out);
            for (std::size_t i = 0; i < count; ++i)
                receiver[at + i] = block[i];
        }
    }
}

} // namespace sluice::detail
