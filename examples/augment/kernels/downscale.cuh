/// \file
/// The kernel for an image, or a crop, that is made smaller, after which only values change: it is filtered in two steps.
///
/// A block makes a tile of one image. First columns are filtered, four neighbouring numbers of memory at once, and go to
/// shared memory, each channel by itself; from there a thread filters rows, for four rows and all channels at once.
#pragma once

#include <augment/kernels/tiles.cuh>
#include <nn/core/ceil_div.hpp>

namespace augment::detail {

/// The index of the resize in a chain of a resize, or of an exact crop and a resize, with only operators on values after it;
/// the number of operators in other chains.
template <class C>
SLUICE_HOST_DEVICE constexpr std::size_t place_of_resize() {
    std::size_t place = 0;
    if constexpr (C::size > 1)
        place = std::is_base_of_v<Crop, typename C::template Op<0>> ? 1 : 0;
    if constexpr (C::size > 1) {
        if (place == 1 && !std::is_same_v<typename C::template Op<1>, Resize>)
            return C::size;
    }
    if (place == 0 && !std::is_same_v<typename C::template Op<0>, Resize>)
        return C::size;
    for (std::size_t i = place + 1; i < C::size; ++i) {
        if (C::kinds[i] != OperatorKind::value)
            return C::size;
    }
    return place;
}

inline constexpr int downscale_columns = 128;      ///< of a tile, at most
inline constexpr int most_downscale_threads = 320; ///< of a block
inline constexpr int plane_words = 2304;           ///< in shared memory, of a channel
inline constexpr int weight_words = 512;
inline constexpr int most_strip = 32;

template <class C, class In, class Out>
struct DownscaleArguments : TileArguments<C, In, Out> {
    Resize::Prepared resize;
    int pitch; ///< words of a row in shared memory
    int taps;  ///< rows that one row of the result is made of, at most
};

/// What a row of the result is made of.
struct RowOfTile {
    int begin;
    int count;
    float total; ///< of the weights
    float one_by_total;
};

/// What a tile is made of, in columns of the whole image.
struct PartOfRows {
    int top_of_crop;
    int left_of_crop;
    int begin;
    int end;
    int first;        ///< of the numbers of a row
    int quads;        ///< of numbers
    unsigned inverse; ///< of `quads`, times 2^32
};

/// `value / divisor`, of which `inverse` is nearly the inverse, for numbers that are neither large nor small: exact where a
/// division is, so that ties remain ties.
__device__ inline float divided(float value, float divisor, float inverse) {
    const float close = value * inverse;
    return fmaf(fmaf(-close, divisor, value), inverse, close);
}

/// Reads four neighbours at once; or else, one by one, as many of them as there are `left`.
template <bool at_once, class In>
__device__ void load_four(const In* from, int left, float (&result)[4]) {
    if constexpr (at_once && std::is_same_v<In, std::uint8_t>) {
        const unsigned four = __ldg(reinterpret_cast<const unsigned*>(from));
        result[0] = shifted<0x7440>(four) - 8388608.0f;
        result[1] = shifted<0x7441>(four) - 8388608.0f;
        result[2] = shifted<0x7442>(four) - 8388608.0f;
        result[3] = shifted<0x7443>(four) - 8388608.0f;
    } else {
        Four<In> four{};
        if constexpr (at_once)
            four = *reinterpret_cast<const Four<In>*>(from);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (!at_once && i < left)
                four.value[i] = from[i];
            result[i] = load_pixel(four.value[i]);
        }
    }
}

/// Prepares what a block filters with: the weights of its rows, and the columns that they come from.
template <class C, class In, class Out>
__device__ __forceinline__ void prepare_filter(const DownscaleArguments<C, In, Out>& arguments,
                                               const SharedSample<C>& sample, int top, int count, int left,
                                               int right, float* weights, RowOfTile* rows, PartOfRows& part) {
    constexpr std::size_t place = place_of_resize<C>();
    const Resize::Prepared& resize = arguments.resize;
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);
    for (int i = thread; i < count * arguments.taps; i += threads) {
        const int row = i / arguments.taps;
        const Triangle taps = triangle(top + row, resize.scale_y, resize.in_height);
        weights[i] = taps.weight(taps.begin + i - row * arguments.taps);
        if (i == row * arguments.taps) {
            const float total = taps.total();
            rows[row] = {taps.begin, taps.end - taps.begin, total, 1.0f / total};
        }
    }
    if (thread == 0) { // which has prepared the crop
        int top_of_crop = 0;
        int left_of_crop = 0;
        if constexpr (place == 1) {
            top_of_crop = element<0>(sample.prepared).top;
            left_of_crop = element<0>(sample.prepared).left;
        }
        const int begin = left_of_crop + triangle(left, resize.scale_x, resize.in_width).begin;
        const int end = left_of_crop + triangle(right - 1, resize.scale_x, resize.in_width).end;
        const int first = (begin * arguments.in_strides.column) & ~3;
        const int quads = nn::ceil_div(end * arguments.in_strides.column - first, 4);
        part = {top_of_crop,
                left_of_crop,
                begin,
                end,
                first,
                quads,
                0xFFFFFFFFu / static_cast<unsigned>(quads) + 1};
    }
}

/// Stores four neighbours of a row of interleaved channels, from number `at` on, of `numbers` in the tile's part of it.
template <int Channels>
__device__ __forceinline__ void store_interleaved(float* row, const float (&four)[4], int at, int numbers) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        if (at + n >= 0 && at + n < numbers)
            row[(at + n) % Channels * plane_words + (at + n) / Channels] = four[n];
    }
}

/// The second step: filters rows from `origin` in shared memory, for four rows and all channels at once, and stores them.
template <int Channels, class C, class In, class Out>
__device__ __forceinline__ void filter_rows(const DownscaleArguments<C, In, Out>& arguments,
                                            const typename C::Prepared& prepared, const float* origin,
                                            const RowOfTile* rows, int image, int first_channel, int top,
                                            int count, int left, int right) {
    constexpr std::size_t place = place_of_resize<C>();
    const Strides& strides = arguments.out_strides;
    const Resize::Prepared& resize = arguments.resize;
    for (int i = static_cast<int>(threadIdx.x); i < nn::ceil_div(count, 4) * arguments.columns;
         i += static_cast<int>(blockDim.x)) {
        const int row = i / arguments.columns * 4;
        const int x = left + i - row / 4 * arguments.columns;
        if (x >= right)
            continue;
        const Triangle taps = triangle(x, resize.scale_x, resize.in_width);
        const float* from[4];
        Pixel<Channels> pixel[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            from[r] = origin + least(row + r, count - 1) * arguments.pitch + taps.begin;
            pixel[r] = filled<Channels>(0.0f);
        }
        float total = 0.0f;
#pragma unroll 2
        for (int k = taps.begin; k < taps.end; ++k) {
            const float weight = taps.weight(k);
            total += weight;
#pragma unroll
            for (int r = 0; r < 4; ++r) {
#pragma unroll
                for (int c = 0; c < Channels; ++c)
                    pixel[r].value[c] += weight * from[r][c * plane_words];
                ++from[r];
            }
        }
        const float one_by_total = 1.0f / total;
        Out* to = arguments.out + image * strides.image + first_channel * strides.channel +
                  (top + row) * strides.row + x * strides.column;
#pragma unroll
        for (int r = 0; r < 4; ++r) {
            if (row + r < count) {
                const float divisor = rows[row + r].total * total;
                const float one_by = rows[row + r].one_by_total * one_by_total;
#pragma unroll
                for (int c = 0; c < Channels; ++c) {
                    float value = pixel[r].value[c];
                    if constexpr (std::is_same_v<In, std::uint8_t>) {
                        value = divided(value, divisor, one_by);
                    } else {
                        value /= divisor;
                    }
                    to[c * strides.channel] =
                        store_pixel<Out>(finished<C, place + 1>(prepared, value, first_channel + c));
                }
            }
            to += strides.row;
        }
    }
}

template <int Channels, class C, class In, class Out>
__global__ void __launch_bounds__(most_downscale_threads, 4)
    downscale_kernel(const __grid_constant__ DownscaleArguments<C, In, Out> arguments) {
    __shared__ __align__(16) float sums[Channels * plane_words];
    __shared__ float weights[weight_words];
    __shared__ RowOfTile rows[most_strip];
    __shared__ __align__(alignof(SharedSample<C>)) char sample_bytes[sizeof(SharedSample<C>)];
    auto& sample = *reinterpret_cast<SharedSample<C>*>(sample_bytes);
    __shared__ PartOfRows part;
    const int image = static_cast<int>(blockIdx.z);
    const int first_channel = Channels > 1 ? 0 : static_cast<int>(blockIdx.y) / arguments.tiles;
    const int top = static_cast<int>(blockIdx.x) * arguments.strip;
    const int count = least(arguments.strip, arguments.out_shape.height - top);
    const int left = (static_cast<int>(blockIdx.y) - first_channel * arguments.tiles) * arguments.columns;
    const int right = least(left + arguments.columns, arguments.out_shape.width);
    const int thread = static_cast<int>(threadIdx.x);
    const int threads = static_cast<int>(blockDim.x);

    prepare_operators<Staging::none>(arguments, image, 0, sample);
    prepare_filter(arguments, sample, top, count, left, right, weights, rows, part);
    __syncthreads();
    const Strides& strides = arguments.in_strides;
    const bool planar = strides.column == 1;
    const auto [top_of_crop, left_of_crop, begin, end, first, quads, inverse] = part;
    const In* const in = arguments.in + image * strides.image + first_channel * strides.channel +
                         top_of_crop * strides.row + first;
    const int left_of_row = strides.row - first;
    const auto filter_columns = [&](auto count_of_planes, auto by_fours, const auto& store) {
        constexpr int planes = decltype(count_of_planes)::value;
        for (int i = thread; i < count * quads; i += threads) {
            const int row = quads == 1 ? i : static_cast<int>(__umulhi(static_cast<unsigned>(i), inverse));
            const int number = 4 * (i - row * quads);
            const In* from = in + rows[row].begin * strides.row + number;
            const float* weight = weights + row * arguments.taps;
            float sum[static_cast<std::size_t>(planes)][4] = {};
#pragma unroll 2
            for (int k = rows[row].count; k > 0; --k) {
#pragma unroll
                for (int c = 0; c < planes; ++c) {
                    float four[4];
                    load_four<decltype(by_fours)::value>(from + c * strides.channel, left_of_row - number,
                                                         four);
#pragma unroll
                    for (int n = 0; n < 4; ++n)
                        sum[c][n] += *weight * four[n];
                }
                from += strides.row;
                ++weight;
            }
            store(row * arguments.pitch, number, sum);
        }
    };
    const auto filter = [&](auto count_of_planes, const auto& store) {
        if (arguments.in_by_fours) {
            filter_columns(count_of_planes, std::true_type(), store);
        } else {
            filter_columns(count_of_planes, std::false_type(), store);
        }
    };
    if (planar) {
        filter(std::integral_constant<int, Channels>(),
               [&](int row, int number, const float(&sum)[Channels][4]) {
#pragma unroll
                   for (int c = 0; c < Channels; ++c)
                       *reinterpret_cast<float4*>(sums + c * plane_words + row + number) =
                           float4{sum[c][0], sum[c][1], sum[c][2], sum[c][3]};
               });
    } else {
        filter(std::integral_constant<int, 1>(), [&](int row, int number, const float(&sum)[1][4]) {
            store_interleaved<Channels>(sums + row, sum[0], first + number - Channels * begin,
                                        Channels * (end - begin));
        });
    }
    __syncthreads();

    const typename C::Prepared prepared = sample.prepared;
    const float* const origin = sums + left_of_crop - (planar ? first : begin);
    filter_rows<Channels>(arguments, prepared, origin, rows, image, first_channel, top, count, left, right);
}

} // namespace augment::detail
