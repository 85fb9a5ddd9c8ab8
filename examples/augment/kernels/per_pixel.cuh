/// \file
/// The kernel that evaluates a chain without a blur.
#pragma once

#include <augment/kernels/tiles.cuh>

namespace augment::detail {

/// Whether a rotation is among the operators.
template <class C, std::size_t Index = 0>
SLUICE_HOST_DEVICE constexpr bool has_rotation() {
    if constexpr (Index == C::size) {
        return false;
    } else {
        using Op = typename C::template Op<Index>;
        return std::is_same_v<Op, Rotate<Nearest>> || std::is_same_v<Op, Rotate<Bilinear>> ||
               has_rotation<C, Index + 1>();
    }
}

/// Whether all operators are on values.
template <class C>
SLUICE_HOST_DEVICE constexpr bool only_values() {
    for (const OperatorKind kind : C::kinds) {
        if (kind != OperatorKind::value)
            return false;
    }
    return true;
}

/// Which four pixels of a row a thread computes at once: the first, how far apart they are, and how many rows its group
/// does at once. Four neighbours can be stored at once. Where images are rotated, a warp rather does squares of 8x4 pixels,
/// one after another: they come from fewer lines of memory than a long row.
struct FourPixels {
    int x;
    int y;
    int step;
    int rows;
};

template <class C>
__device__ FourPixels four_pixels(int thread, int columns, bool by_fours) {
    if constexpr (has_rotation<C>())
        return {thread / 32 * 32 + thread % 8, thread % 32 / 8, 8, 4};
    return by_fours ? FourPixels{4 * thread, 0, 1, 1} : FourPixels{thread, 0, columns, 1};
}

/// Without a blur: a thread computes four pixels of rows of its strip.
template <Staging staging, int Channels, class C, class In, class Out>
__global__ void __launch_bounds__(block_threads)
    pixels_kernel(const __grid_constant__ TileArguments<C, In, Out> arguments) {
    extern __shared__ __align__(16) char dynamic[];
    __shared__ __align__(alignof(SharedSample<C>)) char sample_bytes[sizeof(SharedSample<C>)];
    auto& sample = *reinterpret_cast<SharedSample<C>*>(sample_bytes);
    const int image = static_cast<int>(blockIdx.x);
    const int width = arguments.out_shape.width;
    const int rows_of_block = static_cast<int>(blockDim.y) * arguments.strip;
    const int first_channel = Channels > 1 ? 0 : static_cast<int>(blockIdx.z) / arguments.tiles;
    const int tile = static_cast<int>(blockIdx.z) - first_channel * arguments.tiles;
    prepare_block<staging>(arguments, image, rows_of_block, sample, dynamic);

    const FourPixels places =
        four_pixels<C>(static_cast<int>(threadIdx.x), arguments.columns, arguments.by_fours);
    const int x = tile * arguments.tile + places.x;
    if (x >= width)
        return;
    const int strip = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y) * arguments.strip;
    const int begin = strip + places.y;
    const int end = least(strip + arguments.strip, arguments.out_shape.height);
    const typename C::Prepared prepared = sample.prepared;
    const Strides& strides = arguments.out_strides;
    Out* const out = arguments.out + image * strides.image + first_channel * strides.channel;
    const auto store = [&](const Pixel<Channels>(&pixel)[4], int y) {
        Out* const to = out + y * strides.row + x * strides.column;
        if (!has_rotation<C>() && arguments.by_fours) {
#pragma unroll
            for (int c = 0; c < Channels; ++c) {
                Four<Out> four;
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    four.value[i] = store_pixel<Out>(pixel[i].value[c]);
                *reinterpret_cast<Four<Out>*>(to + c * strides.channel) = four;
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (x + i * places.step < width) {
#pragma unroll
                for (int c = 0; c < Channels; ++c)
                    to[i * places.step * strides.column + c * strides.channel] =
                        store_pixel<Out>(pixel[i].value[c]);
            }
        }
    };
    if constexpr (only_values<C>()) {
        if (arguments.by_fours && arguments.in_by_fours) {
            const In* const in = arguments.in + image * arguments.in_strides.image +
                                 first_channel * arguments.in_strides.channel + x;
#pragma unroll 4
            for (int y = begin; y < end; ++y) {
                Pixel<Channels> pixel[4];
#pragma unroll
                for (int c = 0; c < Channels; ++c) {
                    const auto four = *reinterpret_cast<const Four<In>*>(
                        in + c * arguments.in_strides.channel + y * arguments.in_strides.row);
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        pixel[i].value[c] =
                            finished<C, 0>(prepared, load_pixel(four.value[i]), first_channel + c);
                }
                store(pixel, y);
            }
            return;
        }
    }
    with_image<staging, Channels>(arguments, prepared, image, first_channel, dynamic,
                                  [&](const auto& pixels) {
                                      for (int y = begin; y < end; y += places.rows) {
                                          Pixel<Channels> pixel[4];
#pragma unroll
                                          for (int i = 0; i < 4; ++i)
                                              pixel[i] = pixels(y, least(x + i * places.step, width - 1));
                                          store(pixel, y);
                                      }
                                  });
}

} // namespace augment::detail
