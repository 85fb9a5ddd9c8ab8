/// \file
/// The kernel behind `conv_dgrad` for maps of four channels. Gradients that are spread over pixels stay in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include <nn/conv/detail/conv_fprop.cuh>
#include <nn/conv/detail/pool_routes.cuh>

namespace nn::detail {

/// A thread's share of a row of eight pools: four channels of a pool, and of those beside it.
struct NarrowPools {
    uint2 gradients[3];
    std::uint32_t routes[3];
};

/// Adds what a row of pools contributes to four rows of results: `factors` are [kx][ky].
__device__ __forceinline__ void add_pools(float (&sums)[4][4], const NarrowPools& pools,
                                          const uint2 (&factors)[9]) {
    std::uint32_t pairs[3][2];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        pairs[i][0] = routes_of_pair(pools.routes[i], 0);
        pairs[i][1] = routes_of_pair(pools.routes[i], 1);
    }
#pragma unroll
    for (int below = 0; below < 2; ++below) {
        const int left = 2 * below;
        const int right = left + 1;
        const std::uint32_t a0 = routed(pools.gradients[0].x, pairs[0][0], right);
        const std::uint32_t a1 = routed(pools.gradients[0].y, pairs[0][1], right);
        const std::uint32_t b0 = routed(pools.gradients[1].x, pairs[1][0], left);
        const std::uint32_t b1 = routed(pools.gradients[1].y, pairs[1][1], left);
        const std::uint32_t c0 = routed(pools.gradients[1].x, pairs[1][0], right);
        const std::uint32_t c1 = routed(pools.gradients[1].y, pairs[1][1], right);
        const std::uint32_t d0 = routed(pools.gradients[2].x, pairs[2][0], left);
        const std::uint32_t d1 = routed(pools.gradients[2].y, pairs[2][1], left);
        // Even pixels are a fragment's first rows, odd ones the others.
        const std::uint32_t fragments[3][4] = {{a0, b0, a1, b1}, {b0, c0, b1, c1}, {c0, d0, c1, d1}};
#pragma unroll
        for (int kx = 0; kx < 3; ++kx) {
#pragma unroll
            for (int ky = 0; ky < 3; ++ky)
                multiply_add(sums[2 + below - ky], fragments[kx], factors[kx * 3 + ky].x,
                             factors[kx * 3 + ky].y);
        }
    }
}

inline constexpr int narrow_strip = 16;   // pixels in a row, which a warp computes
inline constexpr int narrow_segment = 16; // pools, below one another, whose pixels it computes

/// A warp goes down a strip. A row of pools is two of pixels, each of which goes to three rows of results; two are done
/// after each. Outputs are dealt to the steps of the Tensor Cores such that a thread's four lie side by side.
static __global__ void __launch_bounds__(conv_threads)
    conv_dgrad_narrow_kernel(const std::uint16_t* pooled_gradient, const std::uint32_t* routes,
                             ConvShape shape, const std::uint32_t* packed, std::uint16_t* gradient,
                             std::size_t warps) {
    const std::size_t index = static_cast<std::size_t>(blockIdx.x) * (conv_threads / 32) + threadIdx.x / 32;
    if (index >= warps)
        return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int quad = lane % 4;
    const unsigned in_image = static_cast<unsigned>(index % shape.tiles);
    const std::size_t image = index / shape.tiles;
    const int height = shape.height / 2;
    const int width = shape.width / 2;
    const int x = static_cast<int>(in_image % shape.tiles_x) * (narrow_strip / 2) + lane / 4;
    const int first = static_cast<int>(in_image / shape.tiles_x) * narrow_segment;
    const int last = first + narrow_segment < height ? first + narrow_segment : height;
    const int groups = shape.outputs / 16;

    uint2 factors[9]; // [kx][ky]
    const auto load_factors = [&](int group) {
#pragma unroll
        for (int i = 0; i < 9; ++i)
            factors[i] = reinterpret_cast<const uint2*>(packed)[(group * 9 + i) * 32 + lane];
    };
    // From the middle one of three pools on, in the first row of the image.
    const std::size_t origin = (image * height * width + x) * shape.outputs + quad * 4;
    const std::uint16_t* const gradients_from = pooled_gradient + origin;
    const std::uint16_t* const routes_from = reinterpret_cast<const std::uint16_t*>(routes) + origin / 4;
    const bool inside[3] = {x > 0 && x <= width, x < width, x + 1 < width};
    const int row = width * shape.outputs;
    const auto load_pools = [&](int y, int group) {
        NarrowPools pools;
        const bool in_rows = y >= 0 && y < height;
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            const int at = y * row + group * 16 + (i - 1) * shape.outputs;
            const bool there = in_rows && inside[i];
            pools.gradients[i] =
                there ? *reinterpret_cast<const uint2*>(gradients_from + at) : make_uint2(0, 0);
            pools.routes[i] = there ? routes_from[at / 4] : 0;
        }
        return pools;
    };

    std::uint32_t* const to =
        reinterpret_cast<std::uint32_t*>(gradient) + 2 * (image * shape.height * shape.width + 2 * x) + quad;
    // The rows of results 2 y - 1 … 2 y + 2 of the pools' row y.
    float sums[4][4] = {};
    load_factors(0);
    NarrowPools next = load_pools(first - 1, 0);
    for (int y = first - 1; y <= last; ++y) {
        for (int group = 0; group < groups; ++group) {
            const NarrowPools pools = next;
            if (groups > 1)
                load_factors(group);
            next = group + 1 < groups ? load_pools(y, group + 1) : load_pools(y + 1, 0);
            add_pools(sums, pools, factors);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            // The words of even pixels are with the first two threads of four; those of odd ones go to the others.
            const std::uint32_t even = two_bfloat16(sums[i][0], sums[i][1]);
            const std::uint32_t odd =
                __shfl_sync(0xFFFFFFFFu, two_bfloat16(sums[i][2], sums[i][3]), lane - 2);
            const int line = 2 * y - 1 + i;
            if (line >= 2 * first && line < 2 * last && x < width)
                to[line * shape.width * 2] = quad < 2 ? even : odd;
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                sums[i][e] = sums[i + 2][e];
                sums[i + 2][e] = 0.0f;
            }
        }
    }
}

} // namespace nn::detail
