/// \file
/// A 16-bit floating-point number: the upper half of a float32.
#pragma once

#include <cstdint>
#include <cstring>

#include <sluice/backend/config.hpp>

namespace nn {

/// bfloat16, as it lies in memory: 8 bits of exponent, 7 of mantissa. It is stored and converted, never computed
/// with: sums are float32. Plain C++, the same bits on every backend; a kernel may read it as `__nv_bfloat16`.
struct Bfloat16 {
    std::uint16_t bits;

    Bfloat16() = default;
    /// Rounds to the nearest, ties to even. NaN stays NaN.
    SLUICE_HOST_DEVICE explicit Bfloat16(float value);

    /// Exact.
    SLUICE_HOST_DEVICE explicit operator float() const;

    friend SLUICE_HOST_DEVICE bool operator==(Bfloat16 a, Bfloat16 b) {
        return static_cast<float>(a) == static_cast<float>(b);
    }
};
static_assert(sizeof(Bfloat16) == 2);

// ---------------------------------------------------------------------------------------------------------------

SLUICE_HOST_DEVICE inline Bfloat16::Bfloat16(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof(word));
    if ((word & 0x7FFFFFFFu) > 0x7F800000u) {
        bits = static_cast<std::uint16_t>((word >> 16) | 0x40u); // rounding could make an infinity of a NaN
    } else {
        bits = static_cast<std::uint16_t>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
    }
}

SLUICE_HOST_DEVICE inline Bfloat16::operator float() const {
    const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, sizeof(value));
    return value;
}

} // namespace nn
