/// \file
/// The kernel that evaluates a chain with a blur, and what it shares with the one without, which is in per_pixel.cuh.
///
/// A block works on one image. Its threads form groups, each as wide as a tile of columns; a group takes a strip of rows. A
/// thread walks down its column: it evaluates what comes before the blur, once for all channels, and adds each value to the
/// sums that it belongs to, which are in registers. A finished sum, blurred along the column, goes to shared memory; every
/// few rows the group blurs along the rows from there, finishes the values, and stores four at a time.
///
/// The order in which a value's terms are added does not depend on tiles, strips or the batch.
#pragma once

#include <augment/kernels/staged_crop.cuh>

namespace augment::detail {

inline constexpr int block_threads = 512; ///< twice as many where that saves staging
inline constexpr int most_columns = 256;
inline constexpr int most_groups = 16; ///< of a block: each meets at a barrier of its own
/// Of any block: groups of less than half of its threads leave less than a third of them out.
inline constexpr std::size_t least_warps = 8;

/// Blocks along a grid's second and third direction, at most.
inline constexpr unsigned most_blocks_beside = 65535;

// The blur: along columns in registers, as values come in, then along rows from shared memory. -------------------

inline constexpr int rows_at_once = 4; ///< between two meetings of a group of threads

/// Rows wait in shared memory four columns at a time: those of all rows and channels, then four words that keep the next
/// ones in other banks. So all that differs between rows and channels is a constant.
template <int Channels>
struct RowsLayout {
    static constexpr int stride =
        4 * (Channels * rows_at_once + 1); ///< words from four columns to the next four

    __host__ __device__ static constexpr int words(int columns) { return columns / 4 * stride; }
    __device__ static int place(int column) { return column / 4 * stride + column % 4; }
    __device__ static constexpr int offset(int channel, int row) {
        return 4 * (channel * rows_at_once + row);
    }
};

/// Four numbers that are stored at once.
template <class T>
struct alignas(4 * sizeof(T)) Four {
    T value[4];
};

/// Sums along a column that are under way: those of the rows from `half` above the next value to `half` - 1 below it.
template <int Channels, int half>
struct ColumnSums {
    float sum[static_cast<std::size_t>(Channels)][half > 0 ? static_cast<std::size_t>(2 * half) : 1] = {};

    /// Adds a value to all, and takes out the one that is complete.
    template <class Weights>
    __device__ Pixel<Channels> add(const Pixel<Channels>& pixel, const Weights& weight) {
        Pixel<Channels> complete;
#pragma unroll
        for (int c = 0; c < Channels; ++c) {
            const float value = pixel.value[c];
            if constexpr (half == 0) {
                complete.value[c] = weight[0] * value;
            } else {
                complete.value[c] = fmaf(weight[half], value, sum[c][0]);
#pragma unroll
                for (int k = 0; k + 1 < 2 * half; ++k)
                    sum[c][k] =
                        fmaf(weight[half > k + 1 ? half - k - 1 : k + 1 - half], value, sum[c][k + 1]);
                sum[c][2 * half - 1] = weight[half] * value;
            }
        }
        return complete;
    }
};

/// Blurs along a row from shared memory: four columns, of which `row` has those that begin `margin` before them.
template <int half, int margin, int stride, class Weights>
__device__ void blur_four(const float* row, const Weights& weight, float (&result)[4]) {
    float value[static_cast<std::size_t>(2 * margin + 4)];
#pragma unroll
    for (int i = 0; i < 2 * margin + 4; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(row + i / 4 * stride);
        value[i] = four.x;
        value[i + 1] = four.y;
        value[i + 2] = four.z;
        value[i + 3] = four.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        result[i] = weight[0] * value[margin + i];
#pragma unroll
        for (int k = 1; k <= half; ++k)
            result[i] = fmaf(weight[k], value[margin + i - k] + value[margin + i + k], result[i]);
    }
}

/// Copies a column's values of all rows and channels to another place.
template <int Channels>
__device__ void copy_column(float* to, const float* from) {
#pragma unroll
    for (int i = 0; i < Channels * rows_at_once; ++i)
        to[4 * i] = from[4 * i];
}

// The chain. -----------------------------------------------------------------------------------------------------

template <class C, class In, class Out>
struct TileArguments {
    C chain;
    ParameterSource<sluice::Cuda> parameters;
    const In* in;
    Out* out;
    ImageShape in_shape;
    ImageShape out_shape;
    Strides in_strides;
    Strides out_strides;
    StagedLayout staged;
    int columns;           ///< threads of a group
    int strip;             ///< rows of a group
    int tile;              ///< columns of the result that a group makes
    int tiles;             ///< beside each other
    int words_before_rows; ///< in shared memory: what is staged, and tables
    int rotated_rows;      ///< in the table of the part of a rotation that depends on a row alone
    bool whole;            ///< a tile is as wide as the image
    bool by_words;         ///< the input may be read in words of four bytes
    bool by_fours;         ///< the result may be written four numbers at a time
    bool in_by_fours;      ///< the input may be read so
};

/// How many columns beside a tile are kept on each side: as many as the blur needs, in units of four.
template <class C>
SLUICE_HOST_DEVICE constexpr int tile_margin() {
    return (C::template Op<C::blur>::half + 3) / 4 * 4;
}

/// How many rows around its own a strip needs for the blur.
template <class C>
SLUICE_HOST_DEVICE constexpr int rows_around() {
    if constexpr (C::blur < C::size) {
        return C::template Op<C::blur>::half;
    } else {
        return 0;
    }
}

__device__ inline void meet(int group, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(group), "r"(threads) : "memory");
}

/// What the threads of a block share, besides dynamic memory.
template <class C>
struct SharedSample {
    typename C::Prepared prepared;
    Rows staged; ///< of the crop
};

/// Prepares a chain's operators, each in a warp of its own as far as there are that many: what one needs of the sample's
/// parameters is all that is drawn there.
template <Staging staging, std::size_t Index = 0, class C, class In, class Out>
__device__ void prepare_operators(const TileArguments<C, In, Out>& arguments, int image, int rows_of_block,
                                  SharedSample<C>& sample) {
    if constexpr (Index < C::size) {
        if (thread_of_block() == 32 * static_cast<int>(Index % least_warps)) {
            const ImageShape before = arguments.chain.template shape_before<Index>(arguments.in_shape);
            const auto prepared =
                arguments.chain.template op<Index>().prepare(arguments.parameters[image], before);
            element<Index>(sample.prepared) = prepared;
            if constexpr (staging != Staging::none && Index == 2) {
                const int begin = static_cast<int>(blockIdx.y) * rows_of_block;
                const int end = begin + rows_of_block;
                // The last rows that are evaluated at once may not all be finished.
                sample.staged = staged_rows<rotates_resized_crop<C>()>(prepared, arguments.staged, begin, end,
                                                                       rows_around<C>() + rows_at_once);
            }
        }
        prepare_operators<staging, Index + 1>(arguments, image, rows_of_block, sample);
    }
}

/// Prepares the operators for a block's image, of which it makes `rows_of_block` rows, and stages what they need of the
/// crop where there is staging. Begins and ends with all threads.
template <Staging staging, class C, class In, class Out>
__device__ void prepare_block(const TileArguments<C, In, Out>& arguments, int image, int rows_of_block,
                              SharedSample<C>& sample, char* staged) {
    if constexpr (staging != Staging::none && C::size == 2) {
        if (thread_of_block() == 0)
            sample.staged = {0, arguments.staged.height};
    }
    prepare_operators<staging>(arguments, image, rows_of_block, sample);
    if constexpr (staging != Staging::none)
        write_taps<staging>(staged, arguments.staged);
    __syncthreads();
    if constexpr (staging != Staging::none && rotates_to_nearest<C>()) {
        constexpr int around = rows_around<C>();
        write_rotated_rows(staged + arguments.staged.bytes(), element<2>(sample.prepared),
                           static_cast<int>(blockIdx.y) * rows_of_block - around, arguments.rotated_rows,
                           around);
    }
    if constexpr (staging != Staging::none) {
        const auto crop = element<0>(sample.prepared);
        const Strides& strides = arguments.in_strides;
        stage_pixels(reinterpret_cast<unsigned*>(staged), arguments.staged, sample.staged,
                     arguments.in + image * strides.image + crop.top * strides.row +
                         crop.left * strides.column,
                     strides, arguments.by_words);
        __syncthreads();
    }
}

/// The image before the chain's blur, or all of the chain, as a functor of coordinates.
template <Staging staging, int Channels, class C, class In, class Out, class Work>
__device__ void with_image(const TileArguments<C, In, Out>& arguments, const typename C::Prepared& prepared,
                           int image, int first_channel, const char* staged, const Work& work) {
    if constexpr (staging != Staging::none) {
        const StagedImage<staging> source(staged, arguments.staged);
        work(ImageAfter<C, C::blur, Channels, StagedImage<staging>, 2>{prepared, source, first_channel});
    } else {
        const Strides& strides = arguments.in_strides;
        const ImageSource<In, Channels> source{
            arguments.in + image * strides.image + first_channel * strides.channel, strides};
        work(ImageAfter<C, C::blur, Channels, ImageSource<In, Channels>>{prepared, source, first_channel});
    }
}

/// A column of the image before the chain's blur as a functor of rows, which may lie beyond the image's edges by as much as
/// the blur reaches. `rows_of_block` are those that the block makes.
template <Staging staging, int Channels, class C, class In, class Out, class Work>
__device__ void with_column(const TileArguments<C, In, Out>& arguments, const typename C::Prepared& prepared,
                            int image, int first_channel, int rows_of_block, int x, const char* staged,
                            const Work& work) {
    constexpr int around = rows_around<C>();
    const int height = arguments.out_shape.height;
    // Beyond what the blur needs, a row is only one that exists.
    const auto existing = [=](int y) { return reflected(least(y, height - 1 + around), height); };
    if constexpr (staging != Staging::none && rotates_to_nearest<C>()) {
        const RotatedColumn<staging> source(StagedImage<staging>(staged, arguments.staged),
                                            element<2>(prepared), staged + arguments.staged.bytes(),
                                            static_cast<int>(blockIdx.y) * rows_of_block - around, x);
        const ImageAfter<C, C::blur, Channels, RotatedColumn<staging>, 3> pixels{prepared, source,
                                                                                 first_channel};
        work([&](int y) { return pixels(y, x); });
    } else {
        with_image<staging, Channels>(
            arguments, prepared, image, first_channel, staged,
            [&](const auto& pixels) { work([&](int y) { return pixels(existing(y), x); }); });
    }
}

/// Blurs four columns of a row along it, from `rows` in shared memory, finishes them, and stores the first `count` at `out`.
template <int Channels, class C, class In, class Out>
__device__ __forceinline__ void finish_four(const TileArguments<C, In, Out>& arguments,
                                            const typename C::Prepared& prepared, const float* rows,
                                            int first_channel, Out* out, int count) {
    constexpr int half = C::template Op<C::blur>::half;
    using Layout = RowsLayout<Channels>;
    const Strides& strides = arguments.out_strides;
#pragma unroll
    for (int c = 0; c < Channels; ++c) {
        float result[4];
        blur_four<half, tile_margin<C>(), Layout::stride>(rows + Layout::offset(c, 0),
                                                          element<C::blur>(prepared).weight, result);
        Four<Out> four;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            four.value[i] =
                store_pixel<Out>(finished<C, C::blur + 1>(prepared, result[i], first_channel + c));
        Out* const to = out + c * strides.channel;
        if (arguments.by_fours) {
            *reinterpret_cast<Four<Out>*>(to) = four;
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                if (i < count)
                    to[i * strides.column] = four.value[i];
            }
        }
    }
}

template <Staging staging, int Channels, class C, class In, class Out>
__global__ void __launch_bounds__(2 * block_threads, 1)
    blurred_kernel(const __grid_constant__ TileArguments<C, In, Out> arguments) {
    constexpr int half = C::template Op<C::blur>::half;
    constexpr int margin = tile_margin<C>();
    extern __shared__ __align__(16) char dynamic[];
    __shared__ __align__(alignof(SharedSample<C>)) char sample_bytes[sizeof(SharedSample<C>)];
    auto& sample = *reinterpret_cast<SharedSample<C>*>(sample_bytes);
    const int columns = arguments.columns;
    const int group = static_cast<int>(threadIdx.y);
    const int thread = static_cast<int>(threadIdx.x);
    const int rows_of_block = static_cast<int>(blockDim.y) * arguments.strip;
    const int height = arguments.out_shape.height;
    const int width = arguments.out_shape.width;
    const int image = static_cast<int>(blockIdx.x);
    const int first_channel = Channels > 1 ? 0 : static_cast<int>(blockIdx.z) / arguments.tiles;
    const int left = (static_cast<int>(blockIdx.z) - first_channel * arguments.tiles) * arguments.tile;

    prepare_block<staging>(arguments, image, rows_of_block, sample, dynamic);
    const int begin = static_cast<int>(blockIdx.y) * rows_of_block + group * arguments.strip;
    if (begin >= height)
        return; // all of a group
    const int end = least(begin + arguments.strip, height);
    const typename C::Prepared prepared = sample.prepared;
    const auto& weight = element<C::blur>(prepared).weight;
    using Layout = RowsLayout<Channels>;
    float* const rows = reinterpret_cast<float*>(dynamic) + arguments.words_before_rows +
                        group * Layout::words(columns + 2 * margin);

    // A thread's column, its place in shared memory, and on which sides the image's edge reflects it.
    const int unreflected = arguments.whole ? thread : left - margin + thread;
    const bool evaluates =
        arguments.whole ? thread < width : unreflected >= -half && unreflected < width + half;
    const int x = evaluates ? reflected(unreflected, width) : 0;
    float* const place = rows + Layout::place(arguments.whole ? margin + thread : thread);
    const bool mirrored_left = arguments.whole && evaluates && x >= 1 && x <= half;
    const bool mirrored_right = arguments.whole && evaluates && x <= width - 2 && x >= width - 1 - half;

    // Four columns of each fourth row are a thread's to finish.
    const int quads = columns / 4;
    const int own_row =
        static_cast<int>(static_cast<unsigned>(thread) * (65536u / static_cast<unsigned>(quads) + 1) >> 16);
    const int own_quad = thread - own_row * quads;
    const int out_x = left + 4 * own_quad;
    const int out_columns = least(4, least(left + arguments.tile, width) - out_x);
    const float* const own_rows = rows + own_quad * Layout::stride + Layout::offset(0, own_row);
    const Strides& strides = arguments.out_strides;
    Out* out = arguments.out + image * strides.image + first_channel * strides.channel +
               (begin + own_row) * strides.row + out_x * strides.column;

    with_column<staging, Channels>(
        arguments, prepared, image, first_channel, rows_of_block, x, dynamic, [&](const auto& pixels) {
            ColumnSums<Channels, half> sums;
            if (evaluates) {
#pragma unroll 2
                for (int y = begin - half; y < begin + half; ++y)
                    (void)sums.add(pixels(y), weight);
            }
            for (int y = begin; y < end; y += rows_at_once) {
                if (evaluates) {
#pragma unroll
                    for (int r = 0; r < rows_at_once; ++r) {
                        const Pixel<Channels> complete = sums.add(pixels(y + r + half), weight);
#pragma unroll
                        for (int c = 0; c < Channels; ++c)
                            place[Layout::offset(c, r)] = complete.value[c];
                    }
                }
                if (mirrored_left)
                    copy_column<Channels>(rows + Layout::place(margin - x), place);
                if (mirrored_right) // both, in a narrow image
                    copy_column<Channels>(rows + Layout::place(margin + 2 * (width - 1) - x), place);
                meet(group, columns);
                if (y + own_row < end && out_columns > 0)
                    finish_four<Channels>(arguments, prepared, own_rows, first_channel, out, out_columns);
                out += rows_at_once * strides.row;
                meet(group, columns);
            }
        });
}

} // namespace augment::detail
