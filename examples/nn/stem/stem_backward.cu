#include <algorithm>

#include <nn/core/ceil_div.hpp>
#include <nn/stem/detail/stem_launch.cuh>
#include <nn/stem/detail/stem_stage.cuh>

namespace nn {
namespace {

using namespace detail;

constexpr int backward_threads = 128;
constexpr int backward_warps = backward_threads / 32;
constexpr int backward_blocks = 3; // of a multiprocessor

/// The gradients of the first two layers, one after another: of a block's part of the rows, or of all.
struct StemGradients {
    static constexpr int weights1 = 0;
    static constexpr int bias1 = 64 * 32;
    static constexpr int weights0 = bias1 + 32;
    static constexpr int bias0 = weights0 + 3 * 16;
    static constexpr int size = bias0 + 16;
};

/// The operands that a lane has of a tile, lane 4 g + t.
struct BackwardOperands {
    std::uint32_t pixels[2][4];    // of row 2 g + h
    std::uint32_t across[2][4][2]; // of a half; pixel; column 2 t or 2 t + 1
    uint4 down[2][2];              // the gradient of row 2 g + h: channels 16 i + 4 t and on
    uint4 side[2][2];              // of row 4 t + 2 i + h: channels 4 g and on

    template <class Pixel>
    __device__ __forceinline__ void load(const StemStage<Pixel>& stage, int lane) {
        const int g = lane / 4;
        const int t = lane % 4;
        // Rows 2 g and 2 g + 1 are two lines of four pixels.
#pragma unroll
        for (int line = 0; line < 2; ++line) {
            const float4 four = stage.four_pixels(min(t, 2), g / 4 * 4 + g % 2 * 2 + line, g / 2 % 2 * 4);
            pixels[0][2 * line] = truncated(t < 3 ? four.x : 1.0f);
            pixels[0][2 * line + 1] = truncated(t < 3 ? four.y : 1.0f);
            pixels[1][2 * line] = truncated(t < 3 ? four.z : 1.0f);
            pixels[1][2 * line + 1] = truncated(t < 3 ? four.w : 1.0f);
        }
        // Rows 4 t to 4 t + 3 are 4×4 pixels; their first two are columns 2 t of either half.
#pragma unroll
        for (int line = 0; line < 4; ++line) {
            const float4 four = stage.four_pixels(min(g, 2), t / 2 * 4 + line, t % 2 * 4);
            const std::uint32_t other = g == 3 ? truncated(1.0f) : 0u; // for the bias
            across[0][line % 2 * 2][line / 2] = g < 3 ? truncated(four.x) : other;
            across[0][line % 2 * 2 + 1][line / 2] = g < 3 ? truncated(four.y) : other;
            across[1][line % 2 * 2][line / 2] = g < 3 ? truncated(four.z) : other;
            across[1][line % 2 * 2 + 1][line / 2] = g < 3 ? truncated(four.w) : other;
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                down[half][i] = stage.operand(2 * g + half, 4 * i + t);
                side[half][i] = stage.operand(4 * t + 2 * i + half, g);
            }
        }
    }
};

/// The second layer's weights as left operands: for each pixel, step and lane.
__device__ __forceinline__ void pack_second_layer(uint4* weights1, const float* layer1) {
    const int thread = static_cast<int>(threadIdx.x);
    for (int i = thread; i < 16 * 32; i += backward_threads) {
        // Step i / 32 % 4 of pixel i / 128, for the lane i % 32.
        const float* const from =
            layer1 + (i / 128 * 16 + i % 32 / 4) * 32 + channel_of(i / 32 % 4, 2 * (i % 4));
        weights1[i] =
            make_uint4(to_tf32(truncation_gain * from[0]), to_tf32(truncation_gain * from[8 * 32]),
                       to_tf32(truncation_gain * from[1]), to_tf32(truncation_gain * from[8 * 32 + 1]));
    }
}

/// Adds up the gradients of a block's warps in `sums`, in shared memory, and stores them in `partial`.
__device__ __forceinline__ void store_gradients(float* sums, float (&to_weights1)[4][4][4],
                                                float (&to_weights0)[4], float4& to_bias1, float* partial) {
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    // A lane has fetched the four channels lane % 8 of every fourth row.
#pragma unroll
    for (int apart = 8; apart < 32; apart *= 2) {
        to_bias1.x += __shfl_xor_sync(0xffffffffu, to_bias1.x, apart);
        to_bias1.y += __shfl_xor_sync(0xffffffffu, to_bias1.y, apart);
        to_bias1.z += __shfl_xor_sync(0xffffffffu, to_bias1.z, apart);
        to_bias1.w += __shfl_xor_sync(0xffffffffu, to_bias1.w, apart);
    }
    const auto visit = [&](auto&& each) {
#pragma unroll
        for (int i = 0; i < 64; ++i) {
            const int channel = i / 16 * 16 + g + (i % 4 / 2) * 8;
            each(StemGradients::weights1 + channel * 32 + 4 * (2 * t + i % 2) + i / 4 % 4,
                 to_weights1[i / 16][i / 4 % 4][i % 4]);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // Columns 0 to 2 are the image's channels, column 3 is the bias.
            if (t < 2)
                each(StemGradients::weights0 + (2 * t + i % 2) * 16 + g + (i / 2) * 8, to_weights0[i]);
        }
        if (lane < 8) {
            each(StemGradients::bias1 + 4 * lane, to_bias1.x);
            each(StemGradients::bias1 + 4 * lane + 1, to_bias1.y);
            each(StemGradients::bias1 + 4 * lane + 2, to_bias1.z);
            each(StemGradients::bias1 + 4 * lane + 3, to_bias1.w);
        }
    };
    // The upper half of the warps hands its sums to the lower half, and so on.
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int left = backward_warps / 2; left > 0; left /= 2) {
        if (warp >= left && warp < 2 * left)
            visit([&](int place, float& sum) { sums[(warp - left) * StemGradients::size + place] = sum; });
        __syncthreads();
        if (warp < left)
            visit([&](int place, float& sum) { sum += sums[warp * StemGradients::size + place]; });
        __syncthreads();
    }
    if (warp == 0)
        visit([&](int place, float& sum) { partial[blockIdx.x * StemGradients::size + place] = sum; });
}

/// Adds to the gradients of both layers what pixel `pixel` of a tile's squares contributes; `weights1` are the second layer's
/// for that pixel.
__device__ __forceinline__ void add_pixel(float (&to_weights1)[4][4], float (&to_weights0)[4],
                                          const BackwardOperands& operands,
                                          const std::uint32_t (&weights0)[2], const uint4* weights1,
                                          int pixel, int lane) {
    float back[2][4] = {}; // the gradient of the map of 16 channels
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const uint4 a = weights1[step * 32 + lane];
        const std::uint32_t operand[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const uint4 b = operands.down[half][step / 2];
            multiply_add_tf32(back[half], operand, step % 2 == 0 ? b.x : b.z, step % 2 == 0 ? b.y : b.w);
        }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        float value[4] = {};
        multiply_add_tf32(value, weights0[0], weights0[1], operands.pixels[half][pixel]);
        const std::uint32_t operand[4] = {
            truncated(greater_of(value[0], 0.0f)), truncated(greater_of(value[2], 0.0f)),
            truncated(greater_of(value[1], 0.0f)), truncated(greater_of(value[3], 0.0f))};
        const uint4(&side)[2] = operands.side[half];
        multiply_add_tf32(to_weights1[0], operand, side[0].x, side[1].x);
        multiply_add_tf32(to_weights1[1], operand, side[0].y, side[1].y);
        multiply_add_tf32(to_weights1[2], operand, side[0].z, side[1].z);
        multiply_add_tf32(to_weights1[3], operand, side[0].w, side[1].w);
        const std::uint32_t masked[4] = {
            value[0] > 0.0f ? truncated(back[half][0]) : 0u, value[2] > 0.0f ? truncated(back[half][2]) : 0u,
            value[1] > 0.0f ? truncated(back[half][1]) : 0u, value[3] > 0.0f ? truncated(back[half][3]) : 0u};
        multiply_add_tf32(to_weights0, masked, operands.across[half][pixel][0],
                          operands.across[half][pixel][1]);
    }
}

/// A warp takes a tile at a time. In the products that follow, columns are rows of the map: column c of half h is row
/// 2 c + h. The map of 16 channels comes out with its channels as rows of the product, as the left operand of the sum
/// over the map's rows wants it.
template <class Pixel>
__global__ void __launch_bounds__(backward_threads, backward_blocks)
    stem_backward_kernel(StemImages<Pixel> images, float scale, const float* layer0, const float* bias,
                         const float* layer1, const float* map, const float* gradient, unsigned tiles,
                         float* partial) {
    using Stage = StemStage<Pixel>;
    constexpr std::size_t stages_bytes = sizeof(Stage) * 2 * backward_warps;
    constexpr std::size_t sums_bytes = sizeof(float) * backward_warps / 2 * StemGradients::size;
    __shared__ uint4 weights1[16 * 32];
    __shared__ alignas(16) unsigned char memory[stages_bytes > sums_bytes ? stages_bytes : sums_bytes];
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int g = lane / 4;
    const int t = lane % 4;
    Stage* const stages = reinterpret_cast<Stage*>(memory) + 2 * warp;
    const unsigned warps = gridDim.x * backward_warps;
    const unsigned first = blockIdx.x * backward_warps + threadIdx.x / 32;
    if (first < tiles)
        stages[0].fetch(gradient, map, first, images.at(64 * first, 0), images, lane);
    commit_copies();
    const Pixel* next = first + warps < tiles ? images.at(64 * (first + warps), 0) : nullptr;

    pack_second_layer(weights1, layer1);
    const std::uint32_t weights0[2] = {first_weight(layer0, bias, scale, t, g),
                                       first_weight(layer0, bias, scale, t, g + 8)};
    __syncthreads();

    float to_weights1[4][4][4] = {}; // of a pixel; of channels 4 c + i
    float to_weights0[4] = {};
    float4 to_bias1 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int turn = 0;
    for (unsigned tile = first; tile < tiles; tile += warps, turn ^= 1) {
        if (tile + warps < tiles)
            stages[turn ^ 1].fetch(gradient, map, tile + warps, next, images, lane);
        commit_copies();
        if (tile + 2 * warps < tiles)
            next = images.at(64 * (tile + 2 * warps), 0);
        wait_for_copies<1>();
        Stage& stage = stages[turn];
        stage.mask(to_bias1, lane);
        __syncwarp();

        BackwardOperands operands;
        operands.load(stage, lane);
        __syncwarp(); // before the stage is filled anew
#pragma unroll
        for (int pixel = 0; pixel < 4; ++pixel)
            add_pixel(to_weights1[pixel], to_weights0, operands, weights0, weights1 + pixel * 128, pixel,
                      lane);
    }

    store_gradients(reinterpret_cast<float*>(memory), to_weights1, to_weights0, to_bias1, partial);
}

constexpr int update_slices = 32;
constexpr int update_places = 32;
constexpr unsigned update_parts = 16; // of a thread; more than enough for 132 multiprocessors

/// Adds up the blocks' parts, always in the same order, and takes the step.
__global__ void __launch_bounds__(update_slices* update_places)
    stem_update_kernel(const float* partial, unsigned parts, float scale, const float* factors, float* layer0,
                       float* bias0, float* layer1, float* bias1) {
    __shared__ double slices[update_slices][update_places];
    const int column = static_cast<int>(threadIdx.x) % update_places;
    const int slice = static_cast<int>(threadIdx.x) / update_places;
    const int place = static_cast<int>(blockIdx.x) * update_places + column;
    double sum = 0.0;
    if (place < StemGradients::size) {
        // All of a thread's parts are under way at once.
        float mine[update_parts];
#pragma unroll
        for (unsigned i = 0; i < update_parts; ++i) {
            const unsigned part = i * update_slices + static_cast<unsigned>(slice);
            mine[i] = part < parts ? partial[part * StemGradients::size + place] : 0.0f;
        }
#pragma unroll
        for (unsigned i = 0; i < update_parts; ++i)
            sum += static_cast<double>(mine[i]);
        for (unsigned part = update_parts * update_slices + static_cast<unsigned>(slice); part < parts;
             part += update_slices)
            sum += static_cast<double>(partial[part * StemGradients::size + place]);
    }
    slices[slice][column] = sum;
    __syncthreads();
    if (slice != 0 || place >= StemGradients::size)
        return;
    for (int i = 1; i < update_slices; ++i)
        sum += slices[i][column];
    float* const to = place < StemGradients::bias1      ? layer1 + place
                      : place < StemGradients::weights0 ? bias1 + (place - StemGradients::bias1)
                      : place < StemGradients::bias0    ? layer0 + (place - StemGradients::weights0)
                                                        : bias0 + (place - StemGradients::bias0);
    // Both factors of the products that gave these sums were truncated, or one of them.
    constexpr double gain = truncation_gain;
    if (place < StemGradients::bias1)
        sum *= gain * gain;
    if (place >= StemGradients::weights0)
        sum *= gain;
    if (place >= StemGradients::weights0 && place < StemGradients::bias0)
        sum *= static_cast<double>(scale);
    *to = static_cast<float>(static_cast<double>(factors[1]) * static_cast<double>(*to) +
                             static_cast<double>(factors[0]) * sum);
}

} // namespace

std::size_t stem_backward_scratch() { return backward_blocks * multiprocessors() * StemGradients::size; }

template <class Pixel>
void stem_backward(sluice::CudaStreamRef stream, sluice::DeviceSpan<const Pixel, sluice::Cuda> images,
                   sluice::DeviceSpan<const std::int32_t, sluice::Cuda> raster_of_row, std::size_t width,
                   float scale, const StemUpdate<sluice::Cuda> (&layers)[2],
                   sluice::DeviceSpan<const float, sluice::Cuda> map,
                   Matrix<const float, sluice::Cuda> gradient,
                   sluice::DeviceSpan<const float, sluice::Cuda> factors,
                   sluice::DeviceSpan<float, sluice::Cuda> scratch) {
    const std::size_t rows = checked_stem_pixels<Pixel>("stem_backward", images, raster_of_row, width) / 4;
    for (std::size_t i = 0; i < 2; ++i)
        check_stem_layer("stem_backward", i, {layers[i].weights, layers[i].bias});
    require_size("stem_backward: elements of the gradient", gradient.size(), rows * 32);
    require_size("stem_backward: elements of the map", map.size(), rows * 32);
    check_stem_map("stem_backward", gradient.data());
    check_stem_map("stem_backward", map.data());
    require_size("stem_backward: pixels of an image that are no squares of 8", raster_of_row.size() % 64, 0);
    require_size("stem_backward: factors", factors.size(), 2);
    require_size("stem_backward: scratch memory", scratch.size(), stem_backward_scratch());
    const std::size_t tiles = rows / 16;
    const std::size_t blocks =
        std::min<std::size_t>(ceil_div(tiles, backward_warps), scratch.size() / StemGradients::size);
    stem_backward_kernel<<<static_cast<unsigned>(blocks), backward_threads, 0, stream.get()>>>(
        StemImages<Pixel>(images.data(), raster_of_row, width), scale, layers[0].weights.data(),
        layers[0].bias.data(), layers[1].weights.data(), map.data(), gradient.data(),
        static_cast<unsigned>(tiles), scratch.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
    constexpr int update_blocks = ceil_div(StemGradients::size, update_places);
    stem_update_kernel<<<update_blocks, update_slices * update_places, 0, stream.get()>>>(
        scratch.data(), static_cast<unsigned>(blocks), scale, factors.data(), layers[0].weights.data(),
        layers[0].bias.data(), layers[1].weights.data(), layers[1].bias.data());
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

#define NN_STEM_BACKWARD(Pixel)                                                                              \
    template void stem_backward(                                                                             \
        sluice::CudaStreamRef, sluice::DeviceSpan<const Pixel, sluice::Cuda>,                                \
        sluice::DeviceSpan<const std::int32_t, sluice::Cuda>, std::size_t, float,                            \
        const StemUpdate<sluice::Cuda>(&)[2], sluice::DeviceSpan<const float, sluice::Cuda>,                 \
        Matrix<const float, sluice::Cuda>, sluice::DeviceSpan<const float, sluice::Cuda>,                    \
        sluice::DeviceSpan<float, sluice::Cuda>)
NN_STEM_BACKWARD(std::uint8_t);
NN_STEM_BACKWARD(float);
#undef NN_STEM_BACKWARD

} // namespace nn
