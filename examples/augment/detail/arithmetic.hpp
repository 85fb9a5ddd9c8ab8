/// \file
/// Arithmetic that rounds alike on every backend: without fused multiply-adds, and without a mathematics library. All
/// coordinates of pixels are computed with it.
#pragma once

#include <bit>
#include <cstdint>

#include <sluice/backend/config.hpp>

namespace augment::detail {

/// `a * b` and `a + b`, each rounded.
SLUICE_HOST_DEVICE inline float product(float a, float b);
SLUICE_HOST_DEVICE inline float sum(float a, float b);
SLUICE_HOST_DEVICE inline double product(double a, double b);
SLUICE_HOST_DEVICE inline double sum(double a, double b);

/// To the nearest integer, ties to even, for |value| < 2^22; a NaN and what is larger give an integer below -2^22 or
/// above 2^22.
SLUICE_HOST_DEVICE inline int round_even(float value);

/// The largest integer that is not above `value`, for |value| < 2^30.
SLUICE_HOST_DEVICE inline int round_down(float value);

struct SineCosine {
    float sine;
    float cosine;
};

/// Of an angle in degrees, exact at multiples of 90, otherwise within one unit in the last place. NaN for infinities, and
/// from 1e15 degrees on, either way.
SLUICE_HOST_DEVICE inline SineCosine sine_and_cosine(float degrees);

/// exp(x) for x <= 0, relative error below 3e-7; 0 where it would be less than 2^-125.
SLUICE_HOST_DEVICE inline float exponential(float x);

// ---------------------------------------------------------------------------------------------------------------

// Elsewhere than in device code, `-ffp-contract=off`, which CMAKE_CXX_EXTENSIONS OFF implies, keeps them apart.
SLUICE_HOST_DEVICE inline float product(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

SLUICE_HOST_DEVICE inline float sum(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

SLUICE_HOST_DEVICE inline double product(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

SLUICE_HOST_DEVICE inline double sum(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

SLUICE_HOST_DEVICE inline int bits_of(float value) {
#if defined(__CUDA_ARCH__)
    return __float_as_int(value);
#else
    return std::bit_cast<int>(value);
#endif
}

SLUICE_HOST_DEVICE inline float float_of(int bits) {
#if defined(__CUDA_ARCH__)
    return __int_as_float(bits);
#else
    return std::bit_cast<float>(bits);
#endif
}

SLUICE_HOST_DEVICE inline unsigned low_bits_of(double value) {
#if defined(__CUDA_ARCH__)
    return static_cast<unsigned>(__double2loint(value));
#else
    return static_cast<unsigned>(std::bit_cast<std::uint64_t>(value));
#endif
}

// 1.5 * 2^23: between 2^23 and 2^24 floats are the integers, and adding rounds to one of them.
SLUICE_HOST_DEVICE inline int round_even(float value) {
    return bits_of(sum(value, 12582912.0f)) - 0x4B400000;
}

SLUICE_HOST_DEVICE inline int round_down(float value) {
    const int truncated = static_cast<int>(value);
    return truncated - (value < static_cast<float>(truncated) ? 1 : 0);
}

SLUICE_HOST_DEVICE inline SineCosine sine_and_cosine(float degrees) {
    // Further away the rest is not exact, and then not small: what would come out need not lie in [-1, 1].
    if (!(degrees > -1e15f && degrees < 1e15f))
        return {float_of(0x7FC00000), float_of(0x7FC00000)};
    constexpr double integers = 6755399441055744.0; // 1.5 * 2^52, as in round_even
    const double shifted = sum(product(static_cast<double>(degrees), 1.0 / 90.0), integers);
    const double quarters = sum(shifted, -integers);
    const double rest = sum(static_cast<double>(degrees), product(quarters, -90.0)); // exact, in [-45, 45]
    const double x = product(rest, 0.017453292519943295);
    const double square = product(x, x);
    // Taylor's series to the term that is below 2^-40 at 45 degrees.
    double sine = -1.0 / 39916800.0;
    sine = sum(product(sine, square), 1.0 / 362880.0);
    sine = sum(product(sine, square), -1.0 / 5040.0);
    sine = sum(product(sine, square), 1.0 / 120.0);
    sine = sum(product(sine, square), -1.0 / 6.0);
    sine = product(sum(product(sine, square), 1.0), x);
    double cosine = 1.0 / 479001600.0;
    cosine = sum(product(cosine, square), -1.0 / 3628800.0);
    cosine = sum(product(cosine, square), 1.0 / 40320.0);
    cosine = sum(product(cosine, square), -1.0 / 720.0);
    cosine = sum(product(cosine, square), 1.0 / 24.0);
    cosine = sum(product(cosine, square), -0.5);
    cosine = sum(product(cosine, square), 1.0);
    const float s = static_cast<float>(sine);
    const float c = static_cast<float>(cosine);
    switch (low_bits_of(shifted) & 3u) {
    case 0:
        return {s, c};
    case 1:
        return {c, -s};
    case 2:
        return {-s, -c};
    default:
        return {-c, s};
    }
}

SLUICE_HOST_DEVICE inline float exponential(float x) {
    if (!(x > -86.0f))
        return x == x ? 0.0f : x;
    const int power = round_even(product(x, 1.44269504f));
    const float n = static_cast<float>(power);
    // ln 2 in two parts, of which the first has so few bits that its product with n is exact.
    const float r = sum(sum(x, product(n, -0.693359375f)), product(n, 2.12194440e-4f));
    float value = 1.0f / 5040.0f;
    value = sum(product(value, r), 1.0f / 720.0f);
    value = sum(product(value, r), 1.0f / 120.0f);
    value = sum(product(value, r), 1.0f / 24.0f);
    value = sum(product(value, r), 1.0f / 6.0f);
    value = sum(product(value, r), 0.5f);
    value = sum(product(value, r), 1.0f);
    value = sum(product(value, r), 1.0f);
    return product(value, float_of((power + 127) << 23));
}

} // namespace augment::detail
