// The kernels of normalize_cuda.cu.
#pragma once

#include <images/detail/bytes.cuh>
#include <nn/core/vectors.hpp>

namespace images::detail {

constexpr int normalize_threads = 256;

/// The bytes of a group, loaded at once.
template <class Out>
using GroupBytes = std::conditional_t<group_size<Out> == 8, uint2, unsigned>;

__device__ inline void raise_all(unsigned word, float (&value)[4]) {
    value[0] = raise<0>(word);
    value[1] = raise<1>(word);
    value[2] = raise<2>(word);
    value[3] = raise<3>(word);
}

__device__ inline void raise_all(uint2 words, float (&value)[8]) {
    float low[4];
    float high[4];
    raise_all(words.x, low);
    raise_all(words.y, high);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        value[i] = low[i];
        value[i + 4] = high[i];
    }
}

// The same layout. -----------------------------------------------------------------------------------------------

/// Groups that a thread has under way at once.
constexpr int groups_a_thread = 4;

/// A thread converts some groups, as far from each other as there are threads in a block, so that each store of a warp is
/// contiguous.
template <class Out>
__global__ void normalize_kernel(const std::uint8_t* in, Out* out, std::size_t groups, Normalize normalize) {
    constexpr int size = group_size<Out>;
    const std::size_t begin =
        static_cast<std::size_t>(blockIdx.x) * (normalize_threads * groups_a_thread) + threadIdx.x;
    GroupBytes<Out> bytes[groups_a_thread];
#pragma unroll
    for (int i = 0; i < groups_a_thread; ++i) {
        const std::size_t group = begin + static_cast<std::size_t>(i * normalize_threads);
        if (group < groups)
            bytes[i] = __ldg(reinterpret_cast<const GroupBytes<Out>*>(in) + group);
    }
#pragma unroll
    for (int i = 0; i < groups_a_thread; ++i) {
        const std::size_t group = begin + static_cast<std::size_t>(i * normalize_threads);
        Group<Out> value;
        raise_all(bytes[i], value);
        if (group < groups)
            store_group(value, normalize, out + group * size);
    }
}

// Interleaved to planar, three channels. -------------------------------------------------------------------------

/// A thread converts a group of neighbouring pixels: one group of each plane.
template <class Out>
__global__ void deinterleave_kernel(const std::uint8_t* in, Out* out, unsigned groups_per_image,
                                    unsigned blocks_per_image, Normalize normalize) {
    constexpr int size = group_size<Out>;
    const unsigned image = blockIdx.x / blocks_per_image;
    const unsigned group = (blockIdx.x % blocks_per_image) * blockDim.x + threadIdx.x;
    if (group >= groups_per_image)
        return;
    const std::size_t at = static_cast<std::size_t>(image) * groups_per_image + group;
    const GroupBytes<Out>* from = reinterpret_cast<const GroupBytes<Out>*>(in) + 3 * at;
    Group<Out> value[3]; // in the order of memory: number i is of channel i % 3
#pragma unroll
    for (int i = 0; i < 3; ++i)
        raise_all(__ldg(from + i), value[i]);
    Out* to = out + (static_cast<std::size_t>(image) * 3 * groups_per_image + group) * size;
#pragma unroll
    for (int c = 0; c < 3; ++c) {
        Group<Out> plane;
#pragma unroll
        for (int i = 0; i < size; ++i)
            plane[i] = value[(3 * i + c) / size][(3 * i + c) % size];
        store_group(plane, normalize, to + static_cast<std::size_t>(c) * groups_per_image * size);
    }
}

// More channels. -------------------------------------------------------------------------------------------------

/// A thread makes one pixel of `stored` channels, which it stores at once; where these are not known, one number.
template <unsigned stored, class Out>
__global__ void pad_kernel(const std::uint8_t* in, Out* out, std::size_t threads, unsigned channels,
                           unsigned out_channels, Normalize normalize) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= threads)
        return;
    if constexpr (stored > 0) {
        float value[stored];
#pragma unroll
        for (unsigned c = 0; c < stored; ++c)
            value[c] = c < channels ? normalize(raise(__ldg(in + i * channels + c)) - raised) : 0.0f;
        nn::detail::store(out + i * stored, value);
    } else {
        const std::size_t pixel = i / out_channels;
        const auto c = static_cast<unsigned>(i - pixel * out_channels);
        out[i] = c < channels ? converted<Out>(in[pixel * channels + c], normalize) : Out(0.0f);
    }
}

// Anything else. -------------------------------------------------------------------------------------------------

/// A thread converts one number, of those from `begin` on. `numbers` are of one image.
template <class Out>
__global__ void normalize_each_kernel(const std::uint8_t* in, Out* out, std::size_t begin, std::size_t end,
                                      unsigned channels, std::size_t pixels, bool deinterleave,
                                      Normalize normalize) {
    const std::size_t i = begin + static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= end)
        return;
    std::size_t from = i;
    if (deinterleave) {
        const std::size_t image = i / (pixels * channels);
        const std::size_t rest = i % (pixels * channels);
        from = (image * pixels + rest % pixels) * channels + rest / pixels;
    }
    out[i] = converted<Out>(in[from], normalize);
}

} // namespace images::detail
