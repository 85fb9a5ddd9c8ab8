/// \file
/// What the backward kernel of stem.hpp has in shared memory.
#pragma once

#include <cstddef>

#include <nn/stem/detail/stem_kernels.cuh>

namespace nn::detail {

/// What a warp's products of a tile need in shared memory: 16 rows of the map of 32 channels, 2×2 pixels each, which are
/// a square of 8×8 pixels. While one stage is worked on, the next one is filled.
template <class Pixel>
struct StemStage {
    static constexpr int line = 8;
    static constexpr int channel =
        8 * line + 16 / static_cast<int>(sizeof(Pixel)); // such that channels lie in different banks
    float4 gradient[16 * 8];                             // rows of eight fours of channels
    float4 map[16 * 8];
    alignas(16) Pixel pixels[std::size_t{3} * channel];

    /// Where a row's four channels are: swizzled, such that reading by rows and by channels has no bank conflicts.
    static __device__ int place(int row, int four) {
        return row * 8 + (four ^ (row / 4 * 2) ^ (row / 2 % 2 * 4));
    }

    /// Begins to fetch tile `tile`, whose pixels begin at `from` in the first channel's plane.
    __device__ void fetch(const float* gradients, const float* maps, unsigned tile, const Pixel* from,
                          const StemImages<Pixel>& images, int lane) {
        const float4* const rows = reinterpret_cast<const float4*>(gradients) + std::size_t{tile} * 128;
        const float4* const map_rows = reinterpret_cast<const float4*>(maps) + std::size_t{tile} * 128;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int to = place(4 * i + lane / 8, lane % 8);
            copy_16_bytes(shared_address(gradient + to), rows + 32 * i + lane);
            copy_16_bytes(shared_address(map + to), map_rows + 32 * i + lane);
        }
#pragma unroll
        for (int i = lane; i < 3 * 16; i += 32) {
            images.copy_four(pixels + i / 16 * channel + i % 16 * 4,
                             from + i / 16 * images.size + i % 16 / 2 * images.width + i % 2 * 4);
        }
    }

    /// Applies the ReLU to the gradient that this lane has fetched, and adds it to the bias's.
    __device__ void mask(float4& bias, int lane) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int at = place(4 * i + lane / 8, lane % 8);
            const float4 out = map[at];
            float4 four = gradient[at];
            four.x = out.x > 0.0f ? four.x : 0.0f;
            four.y = out.y > 0.0f ? four.y : 0.0f;
            four.z = out.z > 0.0f ? four.z : 0.0f;
            four.w = out.w > 0.0f ? four.w : 0.0f;
            bias.x += four.x;
            bias.y += four.y;
            bias.z += four.z;
            bias.w += four.w;
            gradient[at] = four;
        }
    }
    __device__ uint4 operand(int row, int four) const {
        return reinterpret_cast<const uint4*>(gradient)[place(row, four)];
    }
    __device__ float4 four_pixels(int of_channel, int y, int x) const {
        const Pixel* const from = pixels + of_channel * channel + y * line + x;
        if constexpr (sizeof(Pixel) == 1) {
            const uchar4 bytes = *reinterpret_cast<const uchar4*>(from);
            return make_float4(bytes.x, bytes.y, bytes.z, bytes.w);
        } else {
            return *reinterpret_cast<const float4*>(from);
        }
    }
};

} // namespace nn::detail
