/// \file
/// Which element of a pool a gradient goes to: four bits, of which at most one is set. See conv_backward.hpp.
#pragma once

#include <cstdint>

#include <nn/core/tensor_cores.cuh>

namespace nn::detail {

/// All bits of each of two bfloat16 numbers that is greater than its counterpart.
__device__ inline std::uint32_t greater_bfloat16(std::uint32_t a, std::uint32_t b) {
    __nv_bfloat162 left;
    __nv_bfloat162 right;
    memcpy(&left, &a, sizeof(left));
    memcpy(&right, &b, sizeof(right));
    return __hgt2_mask(left, right);
}

/// The routes of two channels, in the low byte: from the four elements of each one's pool, rounded, and the pooled one
/// after its ReLU.
__device__ inline std::uint32_t route_pair(std::uint32_t upper_left, std::uint32_t upper_right,
                                           std::uint32_t lower_left, std::uint32_t lower_right,
                                           std::uint32_t pooled) {
    const std::uint32_t second = greater_bfloat16(upper_right, upper_left);
    std::uint32_t greatest = (upper_right & second) | (upper_left & ~second);
    const std::uint32_t third = greater_bfloat16(lower_left, greatest);
    greatest = (lower_left & third) | (greatest & ~third);
    const std::uint32_t fourth = greater_bfloat16(lower_right, greatest);
    std::uint32_t route = (second & 0x00020002u) | (~second & 0x00010001u);
    route = (third & 0x00040004u) | (~third & route);
    route = (fourth & 0x00080008u) | (~fourth & route);
    route &= greater_bfloat16(pooled, 0u);
    return (route | route >> 12) & 0xFFu;
}

/// The routes of eight channels as masks are made of them: channels 2 w and 2 w + 1 in the low bits of the halves.
__device__ inline std::uint32_t routes_of_pair(std::uint32_t routes, int w) {
    const std::uint32_t pair = routes >> (8 * w);
    return (pair & 0xFu) | (pair & 0xF0u) << 12;
}

/// Of two neighbouring channels' gradients what goes to place `place` of their pools.
__device__ inline std::uint32_t routed(std::uint32_t gradients, std::uint32_t pair, int place) {
    // The sign bits of the first and the third byte, all over each half.
    std::uint32_t mask;
    asm("prmt.b32 %0, %1, %1, 0xAA88;" : "=r"(mask) : "r"(pair << (7 - place)));
    return gradients & mask;
}

/// A channel's gradient, the low half of `gradient`, at two places side by side in one word: `route` is 1 for the
/// left one, 2 for the right one.
__device__ inline std::uint32_t routed_beside(std::uint32_t gradient, std::uint32_t route) {
    return gradient * ((route & 1u) | (route & 2u) << 15);
}

} // namespace nn::detail
