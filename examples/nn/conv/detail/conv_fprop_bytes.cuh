/// \file
/// The kernel behind conv_fprop.hpp that convolves bytes to four channels, whose sums are too short for matrix
/// units.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_shape.hpp>
#include <nn/core/tensor_cores.cuh>

namespace nn::detail {

/// A thread's part: the pixels that four neighbouring pools see.
struct PixelWindow {
    float value[4][10];
};

/// Byte `which` of `word` as a number: 2^23 + byte is a float32 whose last bits are the byte.
template <unsigned which>
__device__ inline float byte_of(std::uint32_t word) {
    return __uint_as_float(__byte_perm(word, 0x4B000000u, 0x7440u | which)) - 8388608.0f;
}

/// Rows 2 py - 1 … 2 py + 2, columns x - 1 … x + 8. `aligned`: rows of a multiple of 8 bytes that begin at one.
__device__ inline void load_window(PixelWindow& window, const std::uint8_t* image, int height, int width,
                                   int first_y, int x, bool aligned) {
#pragma unroll
    for (int row = 0; row < 4; ++row) {
        const int y = first_y + row;
        const bool inside = y >= 0 && y < height;
        const std::uint8_t* const line = image + static_cast<std::size_t>(inside ? y : 0) * width;
        if (aligned) {
            uint2 words = make_uint2(0, 0);
            if (inside)
                words = *reinterpret_cast<const uint2*>(line + x);
            window.value[row][0] = inside && x > 0 ? static_cast<float>(line[x - 1]) : 0.0f;
            window.value[row][1] = byte_of<0>(words.x);
            window.value[row][2] = byte_of<1>(words.x);
            window.value[row][3] = byte_of<2>(words.x);
            window.value[row][4] = byte_of<3>(words.x);
            window.value[row][5] = byte_of<0>(words.y);
            window.value[row][6] = byte_of<1>(words.y);
            window.value[row][7] = byte_of<2>(words.y);
            window.value[row][8] = byte_of<3>(words.y);
            window.value[row][9] = inside && x + 8 < width ? static_cast<float>(line[x + 8]) : 0.0f;
        } else {
#pragma unroll
            for (int i = 0; i < 10; ++i) {
                const int column = x - 1 + i;
                const bool there = inside && column >= 0 && column < width;
                window.value[row][i] = there ? static_cast<float>(line[column]) : 0.0f;
            }
        }
    }
}

__device__ inline void add_product(float4& sum, float value, const float4& weight) {
    sum.x = fmaf(value, weight.x, sum.x);
    sum.y = fmaf(value, weight.y, sum.y);
    sum.z = fmaf(value, weight.z, sum.z);
    sum.w = fmaf(value, weight.w, sum.w);
}

__device__ inline float4 greater_of(const float4& a, const float4& b) {
    return make_float4(greater_of(a.x, b.x), greater_of(a.y, b.y), greater_of(a.z, b.z),
                       greater_of(a.w, b.w));
}

/// A thread convolves four neighbouring pools to four channels; blockIdx.y is the group of channels.
static __global__ void __launch_bounds__(conv_threads)
    conv_fprop_bytes_kernel(const std::uint8_t* images, ConvShape shape, float scale, const float* weights,
                            const float* bias, std::uint16_t* pooled, bool aligned, std::size_t threads) {
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * conv_threads + threadIdx.x;
    if (thread >= threads)
        return;
    const unsigned pooled_width = static_cast<unsigned>(shape.width) / 2;
    const unsigned pooled_height = static_cast<unsigned>(shape.height) / 2;
    const unsigned quads = (pooled_width + 3) / 4;
    const std::size_t line = thread / quads;
    const unsigned px = 4 * static_cast<unsigned>(thread - line * quads);
    const std::size_t image = line / pooled_height;
    const unsigned py = static_cast<unsigned>(line - image * pooled_height);
    const std::size_t outputs = static_cast<std::size_t>(shape.outputs);
    const std::size_t channel = 4 * blockIdx.y;

    PixelWindow window;
    load_window(window, images + image * static_cast<std::size_t>(shape.height) * shape.width, shape.height,
                shape.width, 2 * static_cast<int>(py) - 1, 2 * static_cast<int>(px), aligned);
    float4 weight[9];
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
        const float4 one = *reinterpret_cast<const float4*>(weights + tap * outputs + channel);
        weight[tap] = make_float4(one.x * scale, one.y * scale, one.z * scale, one.w * scale);
    }
    const float4 shift = *reinterpret_cast<const float4*>(bias + channel);

    std::uint32_t words[8];
#pragma unroll
    for (int pool = 0; pool < 4; ++pool) {
        float4 greatest;
#pragma unroll
        for (int position = 0; position < 4; ++position) {
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int tap = 0; tap < 9; ++tap) {
                add_product(sum, window.value[position / 2 + tap / 3][2 * pool + position % 2 + tap % 3],
                            weight[tap]);
            }
            greatest = position == 0 ? sum : greater_of(greatest, sum);
        }
        words[2 * pool] =
            two_bfloat16(greater_of(greatest.x + shift.x, 0.0f), greater_of(greatest.y + shift.y, 0.0f));
        words[2 * pool + 1] =
            two_bfloat16(greater_of(greatest.z + shift.z, 0.0f), greater_of(greatest.w + shift.w, 0.0f));
    }
    std::uint16_t* const to = pooled + (line * pooled_width + px) * outputs + channel;
    if (outputs == 4 && pooled_width % 4 == 0) {
        reinterpret_cast<uint4*>(to)[0] = make_uint4(words[0], words[1], words[2], words[3]);
        reinterpret_cast<uint4*>(to)[1] = make_uint4(words[4], words[5], words[6], words[7]);
        return;
    }
#pragma unroll
    for (int pool = 0; pool < 4; ++pool) {
        if (px + pool < pooled_width) {
            *reinterpret_cast<uint2*>(to + pool * outputs) = make_uint2(words[2 * pool], words[2 * pool + 1]);
        }
    }
}

} // namespace nn::detail
