#include <algorithm>

#include <nn/core/ceil_div.hpp>
#include <nn/stem/detail/stem_kernels.cuh>
#include <nn/stem/detail/stem_launch.cuh>

namespace nn {
namespace {

using namespace detail;

constexpr int forward_threads = 256;

struct ForwardWeights {
    const float* weights[3];
    const float* bias[3];
    float scale;
    float unused; // in place of padding, which captures would take for changes
};

using FirstWeights = PackedWeights<16, 32>;
using SecondWeights = PackedWeights<32, 64>;

/// A thread's four columns of a pair of products, of row g or g + 8.
__device__ inline float4 columns_of(const float (&even)[4], const float (&odd)[4], int half) {
    return make_float4(even[2 * half], even[2 * half + 1], odd[2 * half], odd[2 * half + 1]);
}

__device__ inline void relu(float (&sums)[4]) {
#pragma unroll
    for (float& sum : sums)
        sum = greater_of(sum, 0.0f);
}

/// A thread's results of a product as operand of the next.
__device__ inline void operand_of(const float (&sums)[4], std::uint32_t (&operand)[4]) {
    operand[0] = truncated(sums[0]);
    operand[1] = truncated(sums[2]);
    operand[2] = truncated(sums[1]);
    operand[3] = truncated(sums[3]);
}

/// Starts a thread's sums with the bias of their channels.
template <std::size_t Products>
__device__ __forceinline__ void begin_with_bias(float (&sums)[Products][4], const float4* biases, int t) {
#pragma unroll
    for (std::size_t pair = 0; pair < Products / 2; ++pair) {
        const float4 bias = biases[pair * 4 + t];
        sums[2 * pair][0] = sums[2 * pair][2] = bias.x;
        sums[2 * pair][1] = sums[2 * pair][3] = bias.y;
        sums[2 * pair + 1][0] = sums[2 * pair + 1][2] = bias.z;
        sums[2 * pair + 1][1] = sums[2 * pair + 1][3] = bias.w;
    }
}

/// Multiplies the results of one product of the layer before with the weights of `step`, into all products.
template <class Weights>
__device__ __forceinline__ void add_step(float (&sums)[2 * Weights::pairs][4], const float (&before)[4],
                                         const uint4* weights, int step, int lane) {
    std::uint32_t operand[4];
    operand_of(before, operand);
#pragma unroll
    for (int pair = 0; pair < Weights::pairs; ++pair) {
        const uint4 b = weights[Weights::index(step, pair, lane)];
        multiply_add_tf32(sums[2 * pair], operand, b.x, b.y);
        multiply_add_tf32(sums[2 * pair + 1], operand, b.z, b.w);
    }
}

__device__ inline void store_four(float* to, const float4& four) { *reinterpret_cast<float4*>(to) = four; }
__device__ inline void store_four(Bfloat16* to, const float4& four) {
    *reinterpret_cast<uint2*>(to) = make_uint2(two_bfloat16(four.x, four.y), two_bfloat16(four.z, four.w));
}

/// Stores a thread's columns of rows g and g + 8 of a map, which are `row`.
template <std::size_t Products, class Out>
__device__ __forceinline__ void store_columns(const float (&sums)[Products][4], Out* map, int t,
                                              const unsigned (&row)[2], unsigned rows) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        if (row[half] >= rows)
            continue;
        Out* const to = map + static_cast<std::size_t>(row[half]) * (8 * Products) + 4 * t;
#pragma unroll
        for (std::size_t pair = 0; pair < Products / 2; ++pair)
            store_four(to + 16 * pair, columns_of(sums[2 * pair], sums[2 * pair + 1], half));
    }
}

/// The pixels of a warp's tile in shared memory: 16 blocks of 4×4. While one stage is worked on, the next is filled.
template <class Pixel>
struct ForwardStage {
    static constexpr int channel = 16 * 16 + 4; // such that channels lie in different banks
    alignas(16) Pixel pixels[3 * std::size_t{channel}];

    /// Begins to fetch tile `tile`.
    __device__ void fetch(const StemImages<Pixel>& images, unsigned tile, unsigned rows, int lane) {
        const int row = lane % 16;
        const Pixel* const from = images.at(16 * min(tile * 16 + row, rows - 1), 0);
#pragma unroll
        for (int i = 0; i < 6; ++i) {
            const int of_channel = (2 * i + lane / 16) / 4;
            const int line = (2 * i + lane / 16) % 4;
            images.copy_four(pixels + of_channel * channel + row * 16 + line * 4,
                             from + of_channel * images.size + line * images.width);
        }
    }

    /// Two neighbours, of which the first is at an even place.
    __device__ float2 two(int of_channel, int row, int y, int x) const {
        const Pixel* const from = pixels + of_channel * channel + row * 16 + y * 4 + x;
        if constexpr (sizeof(Pixel) == 1) {
            const uchar2 bytes = *reinterpret_cast<const uchar2*>(from);
            return make_float2(bytes.x, bytes.y);
        } else {
            return *reinterpret_cast<const float2*>(from);
        }
    }
};

/// The four pixels of block `j` of rows g and g + 8; channel 3 is 1, for the bias.
template <class Pixel>
__device__ __forceinline__ void load_block(std::uint32_t (&pixels)[2][4], const ForwardStage<Pixel>& stage,
                                           int j, int g, int t) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int line = 0; line < 2; ++line) {
            const float2 two = stage.two(min(t, 2), g + 8 * half, j / 2 * 2 + line, j % 2 * 2);
            pixels[half][2 * line] = truncated(t < 3 ? two.x : 1.0f);
            pixels[half][2 * line + 1] = truncated(t < 3 ? two.y : 1.0f);
        }
    }
}

template <class Pixel>
struct ForwardMemory {
    uint4 weights1[FirstWeights::size];
    uint4 weights2[SecondWeights::size];
    float4 bias1[8];
    float4 bias2[16];
    ForwardStage<Pixel> stages[forward_threads / 32][2];

    /// Fills all but the stages.
    __device__ __forceinline__ void load(const ForwardWeights& layers, int thread) {
        FirstWeights::pack(weights1, layers.weights[1], thread, forward_threads);
        SecondWeights::pack(weights2, layers.weights[2], thread, forward_threads);
        if (thread < 32)
            reinterpret_cast<float*>(bias1)[thread] = layers.bias[1][thread];
        if (thread < 64)
            reinterpret_cast<float*>(bias2)[thread] = layers.bias[2][thread];
    }
};

/// Every warp takes 16 rows of the last map at a time, each a block of 4×4 pixels of an image.
template <class Pixel, class Out, bool keep_first>
__global__ void __launch_bounds__(forward_threads, 2)
    stem_forward_kernel(StemImages<Pixel> images, ForwardWeights layers, float* first, Out* second,
                        unsigned rows) {
    extern __shared__ uint4 stem_memory[];
    auto& memory = *reinterpret_cast<ForwardMemory<Pixel>*>(stem_memory);
    const int thread = static_cast<int>(threadIdx.x);
    const unsigned warps = gridDim.x * (forward_threads / 32);
    unsigned tile = blockIdx.x * (forward_threads / 32) + threadIdx.x / 32;
    ForwardStage<Pixel>(&stages)[2] = memory.stages[thread / 32];
    if (tile * 16 < rows)
        stages[0].fetch(images, tile, rows, thread % 32);
    commit_copies();
    memory.load(layers, thread);

    const int lane = thread % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    // The 1×1 convolution: a step of four channels, of which the image has three; the fourth is 1, for the bias.
    std::uint32_t weights0[2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
        weights0[n] = first_weight(layers.weights[0], layers.bias[0], layers.scale, t, channel_of(n, g));
    __syncthreads();

    for (int turn = 0; tile * 16 < rows; tile += warps, turn ^= 1) {
        if ((tile + warps) * 16 < rows)
            stages[turn ^ 1].fetch(images, tile + warps, rows, lane);
        commit_copies();
        wait_for_copies<1>();
        __syncwarp();
        const ForwardStage<Pixel>& stage = stages[turn];
        const unsigned row[2] = {tile * 16 + g, tile * 16 + g + 8};
        float sums2[8][4];
        begin_with_bias(sums2, memory.bias2, t);
#pragma unroll 1
        for (int j = 0; j < 4; ++j) {
            std::uint32_t pixels[2][4]; // of row g or g + 8
            load_block(pixels, stage, j, g, t);
            float sums1[4][4];
            begin_with_bias(sums1, memory.bias1, t);
#pragma unroll
            for (int pixel = 0; pixel < 4; ++pixel) {
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    float sums0[4] = {};
                    multiply_add_tf32(sums0, pixels[0][pixel], pixels[1][pixel], weights0[n]);
                    relu(sums0);
                    add_step<FirstWeights>(sums1, sums0, memory.weights1, 2 * pixel + n, lane);
                }
            }
#pragma unroll
            for (int n = 0; n < 4; ++n)
                relu(sums1[n]);
            if constexpr (keep_first) {
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    if (row[half] >= rows)
                        continue;
                    float4* const to = reinterpret_cast<float4*>(first) +
                                       (static_cast<std::size_t>(row[half]) * 4 + j) * 8 + t;
#pragma unroll
                    for (int pair = 0; pair < 2; ++pair)
                        to[4 * pair] = columns_of(sums1[2 * pair], sums1[2 * pair + 1], half);
                }
            }
#pragma unroll
            for (int n = 0; n < 4; ++n)
                add_step<SecondWeights>(sums2, sums1[n], memory.weights2, 4 * j + n, lane);
        }
        __syncwarp(); // before the stage is filled anew
#pragma unroll
        for (int n = 0; n < 8; ++n)
            relu(sums2[n]);
        store_columns(sums2, second, t, row, rows);
    }
}

} // namespace

template <class Pixel, class Out>
void stem_forward(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Pixel, sluice::Cuda> images,
                  sluice::DeviceSpan<const std::int32_t, sluice::Cuda> raster_of_row, std::size_t width,
                  float scale, const StemLayer<sluice::Cuda> (&layers)[3],
                  sluice::DeviceSpan<float, sluice::Cuda> first, Matrix<Out, sluice::Cuda> second) {
    const std::size_t pixels = checked_stem_pixels<Pixel>("stem_forward", images, raster_of_row, width);
    const std::size_t rows = pixels / 16;
    for (std::size_t i = 0; i < 3; ++i)
        check_stem_layer("stem_forward", i, layers[i]);
    require_size("stem_forward: elements of the last map", second.size(), rows * 64);
    if (!first.empty())
        require_size("stem_forward: elements of the map before it", first.size(), rows * 4 * 32);
    check_stem_map("stem_forward", first.data());
    check_stem_map("stem_forward", second.data());
    ForwardWeights weights{};
    for (int i = 0; i < 3; ++i) {
        weights.weights[i] = layers[i].weights.data();
        weights.bias[i] = layers[i].bias.data();
    }
    weights.scale = scale;
    // The context is the stream's, and this takes no time worth saving.
    auto kernel = stem_forward_kernel<Pixel, Out, false>;
    if constexpr (std::is_same_v<Out, float>) {
        if (!first.empty())
            kernel = stem_forward_kernel<Pixel, Out, true>;
    } else {
        require_size("stem_forward: elements of the map before one of Bfloat16", first.size(), 0);
    }
    const std::size_t tiles = (rows + 15) / 16;
    constexpr std::size_t warps = forward_threads / 32;
    const std::size_t blocks = std::min<std::size_t>(ceil_div(tiles, warps), 2 * multiprocessors());
    SLUICE_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           sizeof(ForwardMemory<Pixel>)));
    kernel<<<static_cast<unsigned>(blocks), forward_threads, sizeof(ForwardMemory<Pixel>), stream.get()>>>(
        StemImages<Pixel>(images.data(), raster_of_row, width), weights, first.data(), second.data(),
        static_cast<unsigned>(rows));
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

#define NN_STEM_FORWARD(Pixel, Out)                                                                          \
    template void stem_forward(sluice::CudaStreamRef, sluice::DeviceSpan<const Pixel, sluice::Cuda>,         \
                               sluice::DeviceSpan<const std::int32_t, sluice::Cuda>, std::size_t, float,     \
                               const StemLayer<sluice::Cuda>(&)[3], sluice::DeviceSpan<float, sluice::Cuda>, \
                               Matrix<Out, sluice::Cuda>)
NN_STEM_FORWARD(std::uint8_t, float);
NN_STEM_FORWARD(float, float);
NN_STEM_FORWARD(std::uint8_t, Bfloat16);
NN_STEM_FORWARD(float, Bfloat16);
#undef NN_STEM_FORWARD

} // namespace nn
