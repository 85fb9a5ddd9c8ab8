/// \file
/// The kernel behind conv_backward.hpp's `conv_wgrad` for images of bytes, whose sums are too short for matrix
/// units.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_fprop_bytes.cuh>
#include <nn/conv/detail/pool_routes.cuh>

namespace nn::detail {

/// For one channel of a pool: 1, 2, 4 or 8, the place of the greatest of four elements, rounded; 0 where the
/// ReLU of the greatest one and `shift` is 0.
__device__ inline std::uint32_t route_of(const float (&elements)[4], float shift) {
    float greatest = __bfloat162float(__float2bfloat16_rn(elements[0]));
    float exact = elements[0];
    std::uint32_t route = 1;
#pragma unroll
    for (int i = 1; i < 4; ++i) {
        const float element = __bfloat162float(__float2bfloat16_rn(elements[i]));
        exact = greater_of(exact, elements[i]);
        route = element > greatest ? 1u << i : route;
        greatest = element > greatest ? element : greatest;
    }
    return exact + shift > 0.0f ? route : 0;
}

__device__ inline float& component(float4& four, int i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/// Adds up a block's sums of nine taps and the bias, four channels each, and stores them as its part of the gradients.
__device__ __forceinline__ void store_byte_sums(float4 (&sums)[10], float scale, std::size_t outputs,
                                                std::size_t channel, float* weight_parts, float* bias_parts) {
    constexpr int warps = conv_threads / 32;
    __shared__ float warp_sums[warps][40];
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 40; ++i) {
        float sum = component(sums[i / 4], i % 4);
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
        if (lane == 0)
            warp_sums[threadIdx.x / 32][i] = sum;
    }
    __syncthreads();
    if (threadIdx.x < 40) {
        float sum = 0.0f;
        for (int w = 0; w < warps; ++w)
            sum += warp_sums[w][threadIdx.x];
        const std::size_t tap = threadIdx.x / 4;
        const std::size_t output = channel + threadIdx.x % 4;
        if (tap < 9)
            weight_parts[(blockIdx.x * std::size_t{9} + tap) * outputs + output] = scale * sum;
        else
            bias_parts[blockIdx.x * outputs + output] = sum;
    }
}

/// A thread takes four neighbouring pools at a time, of four channels; blockIdx.y is the group of channels, blockIdx.x
/// the part.
static __global__ void __launch_bounds__(conv_threads)
    conv_wgrad_bytes_kernel(const std::uint8_t* images, ConvShape shape, float scale, const float* weights,
                            const float* bias, const std::uint16_t* pooled_gradient, float* weight_parts,
                            float* bias_parts, bool aligned, std::size_t windows) {
    const unsigned pooled_width = static_cast<unsigned>(shape.width) / 2;
    const unsigned pooled_height = static_cast<unsigned>(shape.height) / 2;
    const unsigned quads = (pooled_width + 3) / 4;
    const std::size_t outputs = static_cast<std::size_t>(shape.outputs);
    const std::size_t channel = 4 * blockIdx.y;
    float4 weight[9];
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
        const float4 one = *reinterpret_cast<const float4*>(weights + tap * outputs + channel);
        weight[tap] = make_float4(one.x * scale, one.y * scale, one.z * scale, one.w * scale);
    }
    float4 shift = *reinterpret_cast<const float4*>(bias + channel);
    float4 sums[10] = {}; // of each tap, and the bias

    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * conv_threads + threadIdx.x; i < windows;
         i += static_cast<std::size_t>(gridDim.x) * conv_threads) {
        const std::size_t line = i / quads;
        const unsigned px = 4 * static_cast<unsigned>(i - line * quads);
        const std::size_t image = line / pooled_height;
        const unsigned py = static_cast<unsigned>(line - image * pooled_height);
        PixelWindow window;
        load_window(window, images + image * static_cast<std::size_t>(shape.height) * shape.width,
                    shape.height, shape.width, 2 * static_cast<int>(py) - 1, 2 * static_cast<int>(px),
                    aligned);
        const std::uint16_t* const gradients =
            pooled_gradient + (line * pooled_width + px) * outputs + channel;
        uint2 words[4];
#pragma unroll
        for (int pool = 0; pool < 4; ++pool) {
            words[pool] = px + pool < pooled_width
                              ? *reinterpret_cast<const uint2*>(gradients + pool * outputs)
                              : make_uint2(0, 0);
        }
#pragma unroll
        for (int pool = 0; pool < 4; ++pool) {
            float4 elements[4];
#pragma unroll
            for (int at = 0; at < 4; ++at) {
                elements[at] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
                for (int tap = 0; tap < 9; ++tap) {
                    add_product(elements[at], window.value[at / 2 + tap / 3][2 * pool + at % 2 + tap % 3],
                                weight[tap]);
                }
            }
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const float of_channel[4] = {component(elements[0], c), component(elements[1], c),
                                             component(elements[2], c), component(elements[3], c)};
                const std::uint32_t route = route_of(of_channel, component(shift, c));
                const std::uint32_t word = c < 2 ? words[pool].x : words[pool].y;
                const float gradient = __uint_as_float(c % 2 == 0 ? word << 16 : word & 0xFFFF0000u);
                component(sums[9], c) += route != 0 ? gradient : 0.0f;
#pragma unroll
                for (int at = 0; at < 4; ++at)
                    component(elements[at], c) = (route >> at & 1u) != 0 ? gradient : 0.0f;
            }
#pragma unroll
            for (int at = 0; at < 4; ++at) {
#pragma unroll
                for (int tap = 0; tap < 9; ++tap) {
                    add_product(sums[tap], window.value[at / 2 + tap / 3][2 * pool + at % 2 + tap % 3],
                                elements[at]);
                }
            }
        }
    }

    store_byte_sums(sums, scale, outputs, channel, weight_parts, bias_parts);
}

} // namespace nn::detail
