// The blend of two bytes in one fused multiply-add, which kernels use. On the CPU for tests.
#pragma once

#include <cmath>

#include <images/axis_weights.hpp>
#include <sluice/backend/config.hpp>

namespace images::detail {

/// `a + (((b - a) * weight + 2^14) >> 15)` for bytes a and b, with the weight as a float, from 0 to 1. The bytes and the result
/// are 2^23 above what they stand for, where floats are the integers, so the sum is rounded to one. `step` is
/// `step_between(a, b)`.
///
/// It is rounded to nearest, ties to even, and should be rounded half up. The step is 2^-15 more than b - a, and what that adds
/// to the product is less than the last bit of (b - a) * weight: so a tie is none any more but above it, and whatever is not a
/// tie stays on its side.
SLUICE_HOST_DEVICE inline float blend(float a, float step, float weight) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(step, weight, a);
#else
    return std::fma(step, weight, a);
#endif
}

SLUICE_HOST_DEVICE inline float step_between(float a, float b) {
    return (b - a) + 1.0f / (1 << AxisWeights::pair_bits);
}

} // namespace images::detail
