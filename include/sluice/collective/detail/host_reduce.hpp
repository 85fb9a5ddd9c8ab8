// Sums over ranks on the CPU, in the order of the ranks.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <sluice/collective/detail/call.hpp>

namespace sluice::detail {

/// A float16's bits.
struct Float16Bits {
    std::uint16_t bits;
};
/// A bfloat16's.
struct Bfloat16Bits {
    std::uint16_t bits;
};

/// What elements are added up in, and back, rounded to nearest with ties to even.
template <class T>
T wide(T value) noexcept {
    return value;
}
inline float wide(Bfloat16Bits value) noexcept {
    return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}
inline float wide(Float16Bits value) noexcept {
    const std::uint32_t sign = std::uint32_t{value.bits & 0x8000U} << 16;
    const std::uint32_t rest = value.bits & 0x7fffU;
    if (rest >= 0x7c00U) // infinity and NaN
        return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
    if (rest >= 0x400U)
        return std::bit_cast<float>(sign | ((rest << 13) + (std::uint32_t{112} << 23)));
    const float subnormal = static_cast<float>(rest) * 0x1p-24F;
    return sign != 0 ? -subnormal : subnormal;
}
template <class T>
void narrow(T value, T& to) noexcept {
    to = value;
}
inline void narrow(float value, Bfloat16Bits& to) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = is_nan ? bits | 0x400000U : bits + 0x7fffU + ((bits >> 16) & 1U);
    to.bits = static_cast<std::uint16_t>(rounded >> 16);
}
inline void narrow(float value, Float16Bits& to) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    const std::uint32_t rest = bits & 0x7fffffffU;
    std::uint32_t result = 0;
    if (rest > 0x7f800000U) {
        result = 0x7e00U;
    } else if (rest >= 0x38800000U) { // a normal number, or too large for one
        const std::uint32_t rounded = rest + 0xfffU + ((rest >> 13) & 1U) - (std::uint32_t{112} << 23);
        result = rounded >= 0x0f800000U ? 0x7c00U : rounded >> 13;
    } else { // a multiple of 2^-24, which the sum rounds to
        result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5F) - 0x3f000000U;
    }
    to.bits = static_cast<std::uint16_t>(sign | result);
}

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
    case CollectiveElement::float16:
        return work(Float16Bits{});
    case CollectiveElement::bfloat16:
        return work(Bfloat16Bits{});
    }
}

/// The same whichever is `a`, but for which NaN it is of two: a NaN where there is one, and -0 is less than 0.
template <class T>
T reduced(T a, T b, Reduction reduction) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
        if (reduction == Reduction::minimum || reduction == Reduction::maximum) {
            if (std::isnan(a) || std::isnan(b)) // left out, as by NCCL
                return std::isnan(a) ? b : a;
            if (a == b)
                return std::signbit(b) == (reduction == Reduction::minimum) ? b : a;
        }
    }
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

/// Where part `part` of `parts` begins, which are as long as each other but for one element.
inline std::size_t part_begin(std::size_t count, std::size_t part, std::size_t parts) noexcept {
    return count / parts * part + (part < count % parts ? part : count % parts);
}

/// Elements that are reduced at a time, so that no rank's memory is written before all ranks' has been read.
inline constexpr std::size_t reduce_block = 512;

/// `to(i)[begin … end)` of all `outs` receivers becomes the reduction over all ranks of `from(rank)[begin … end)`. A
/// receiver may be one of the ranks' memory. Blocks are small, and each is complete before it is written.
template <class T, class From, class To>
void reduce_range(std::size_t begin, std::size_t end, int ranks, Reduction reduction, From&& from, int outs,
                  To&& to) {
    using Wide = decltype(wide(T{}));
    Wide block[reduce_block];
    for (std::size_t at = begin; at < end; at += reduce_block) {
        const std::size_t count = end - at < reduce_block ? end - at : reduce_block;
        const T* const first = from(0);
        for (std::size_t i = 0; i < count; ++i)
            block[i] = wide(first[at + i]);
        for (int rank = 1; rank < ranks; ++rank) {
            const T* const next = from(rank);
            for (std::size_t i = 0; i < count; ++i)
                block[i] = reduced(block[i], wide(next[at + i]), reduction);
        }
        if constexpr (std::is_floating_point_v<Wide>) {
            if (reduction == Reduction::average) {
                for (std::size_t i = 0; i < count; ++i)
                    block[i] /= static_cast<Wide>(ranks);
            }
        }
        for (int out = 0; out < outs; ++out) {
            T* const receiver = to(out);
            for (std::size_t i = 0; i < count; ++i)
                narrow(block[i], receiver[at + i]);
        }
    }
}

} // namespace sluice::detail
