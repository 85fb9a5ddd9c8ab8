/// \file
/// The two 16-bit floating-point types as they lie in memory, with no need of a toolkit: two bytes each, the bits of
/// CUDA's `__half` and `__nv_bfloat16`. They are for loading and storing; arithmetic is in float.
#pragma once

#include <bit>
#include <cstdint>

#include <sluice/backend/config.hpp>
#include <sluice/collective/reduction.hpp>

namespace nn {

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction; at most 65,504.
class Half {
public:
    Half() = default; // undefined, as a float
    /// Rounds to nearest, ties to even; what is too large becomes an infinity.
    SLUICE_HOST_DEVICE explicit Half(float value);
    SLUICE_HOST_DEVICE explicit operator float() const;

    SLUICE_HOST_DEVICE static Half from_bits(std::uint16_t bits) {
        Half result;
        result.bits_ = bits;
        return result;
    }
    SLUICE_HOST_DEVICE std::uint16_t bits() const { return bits_; }

private:
    std::uint16_t bits_;
};

/// The upper half of a float: 8 bits of exponent, 7 of fraction.
class Bfloat16 {
public:
    Bfloat16() = default; // undefined, as a float
    /// Rounds to nearest, ties to even.
    SLUICE_HOST_DEVICE explicit Bfloat16(float value);
    SLUICE_HOST_DEVICE explicit operator float() const;

    SLUICE_HOST_DEVICE static Bfloat16 from_bits(std::uint16_t bits) {
        Bfloat16 result;
        result.bits_ = bits;
        return result;
    }
    SLUICE_HOST_DEVICE std::uint16_t bits() const { return bits_; }

private:
    std::uint16_t bits_;
};

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

SLUICE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(value);
#else
    return std::bit_cast<std::uint32_t>(value);
#endif
}

SLUICE_HOST_DEVICE inline float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    return std::bit_cast<float>(bits);
#endif
}

inline constexpr std::uint32_t infinite_float = 0x7F800000u;

/// Rounds away the last `count` bits, to nearest, ties to even.
SLUICE_HOST_DEVICE inline std::uint32_t rounded_shift(std::uint32_t bits, std::uint32_t count) {
    return (bits + ((1u << (count - 1)) - 1) + ((bits >> count) & 1u)) >> count;
}

} // namespace detail

SLUICE_HOST_DEVICE inline Bfloat16::Bfloat16(float value) {
    const std::uint32_t bits = detail::bits_of(value);
    const bool is_nan = (bits & 0x7FFFFFFFu) > detail::infinite_float;
    // A NaN's payload may be all in the half that is cut off, or rounding may carry it away.
    bits_ = static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40u : detail::rounded_shift(bits, 16));
}

SLUICE_HOST_DEVICE inline Bfloat16::operator float() const {
    return detail::float_of(static_cast<std::uint32_t>(bits_) << 16);
}

SLUICE_HOST_DEVICE inline Half::Half(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits_) : "f"(value));
#else
    const std::uint32_t bits = detail::bits_of(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    std::uint32_t result = 0;
    if (magnitude > detail::infinite_float) {
        result = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
    } else if (magnitude >= 0x47800000u) { // 65,536
        result = 0x7C00u;
    } else if (magnitude >=
               0x38800000u) { // 2^-14, the least normal one; rounding may carry up to an infinity
        result = detail::rounded_shift(magnitude - 0x38000000u, 13);
    } else if (magnitude >= 0x33000000u) { // 2^-25, half of the least of all
        const std::uint32_t exponent = magnitude >> 23;
        const std::uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
        result = detail::rounded_shift(fraction, 126 - exponent);
    }
    bits_ = static_cast<std::uint16_t>(sign | result);
#endif
}

SLUICE_HOST_DEVICE inline Half::operator float() const {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits_));
    return value;
#else
    const std::uint32_t sign = static_cast<std::uint32_t>(bits_ & 0x8000u) << 16;
    const std::uint32_t exponent = (bits_ >> 10) & 0x1Fu;
    const std::uint32_t fraction = bits_ & 0x3FFu;
    if (exponent == 0) // a multiple of 2^-24
        return detail::float_of(sign | detail::bits_of(static_cast<float>(fraction) * 0x1p-24f));
    const std::uint32_t widened = exponent == 0x1Fu ? 0xFFu : exponent + 112u;
    return detail::float_of(sign | (widened << 23) | (fraction << 13));
#endif
}

} // namespace nn

// For collectives.
template <>
inline constexpr sluice::Float16Format sluice::float16_format<nn::Half> = sluice::Float16Format::float16;
template <>
inline constexpr sluice::Float16Format sluice::float16_format<nn::Bfloat16> = sluice::Float16Format::bfloat16;
