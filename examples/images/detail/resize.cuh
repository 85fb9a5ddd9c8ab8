// The kernels of resize_cuda.cu.
#pragma once

#include <images/detail/blend.hpp>
#include <images/detail/bytes.cuh>
#include <images/resize.hpp>

namespace images::detail {

constexpr int channels = 3;

/// The weights of one axis on a device; see `AxisWeights`.
struct AxisView {
    int in;
    int out;
    int taps;
    int unused; ///< in place of padding, which captures would take for changes
    const std::int32_t* first;
    const std::int32_t* count;
    const std::int32_t* weight;
    const int2* pairs; ///< a first input, and a second one's weight as a float; null where there are none
};

/// Where output rows are, and what they become.
template <class Out>
struct ResizeTarget {
    Out* data;
    Normalize normalize;
};

// Any sizes. -----------------------------------------------------------------------------------------------------

/// A thread computes one number of one image: it resizes each row that it needs at its own column, and that column then.
template <class Out, Layout layout>
__global__ void resize_kernel(const std::uint8_t* in, ResizeTarget<Out> target, AxisView down,
                              AxisView across, unsigned blocks_per_image) {
    const unsigned image = blockIdx.x / blocks_per_image;
    const unsigned i = (blockIdx.x % blocks_per_image) * blockDim.x + threadIdx.x;
    const unsigned numbers = static_cast<unsigned>(channels * down.out) * static_cast<unsigned>(across.out);
    if (i >= numbers)
        return;
    const auto width = static_cast<unsigned>(across.out);
    const auto pixels = numbers / channels;
    const unsigned pixel = layout == Layout::interleaved ? i / channels : i % pixels;
    const unsigned channel = layout == Layout::interleaved ? i % channels : i / pixels;
    const unsigned y = pixel / width;
    const unsigned x = pixel % width;

    constexpr int half = 1 << (AxisWeights::bits - 1);
    const std::size_t image_size = static_cast<std::size_t>(channels) * static_cast<std::size_t>(down.in) *
                                   static_cast<std::size_t>(across.in);
    const std::uint8_t* begin =
        in + image * image_size +
        static_cast<std::size_t>(down.first[y]) * channels * static_cast<std::size_t>(across.in) +
        channels * across.first[x] + static_cast<int>(channel);
    const std::int32_t* down_weight = down.weight + y * static_cast<unsigned>(down.taps);
    const std::int32_t* across_weight = across.weight + x * static_cast<unsigned>(across.taps);
    int total = half;
    for (int j = 0; j < down.count[y]; ++j) {
        const std::uint8_t* row =
            begin + static_cast<std::size_t>(j) * channels * static_cast<std::size_t>(across.in);
        int sum = half;
        for (int k = 0; k < across.count[x]; ++k)
            sum += across_weight[k] * row[channels * k];
        total += down_weight[j] * (sum >> AxisWeights::bits);
    }
    target.data[static_cast<std::size_t>(image) * numbers + i] =
        converted<Out>(static_cast<std::uint8_t>(total >> AxisWeights::bits), target.normalize);
}

// Two inputs an output, on both axes. ----------------------------------------------------------------------------

/// Threads of a block, and rows that one thread computes: where images grow sevenfold, four of the input.
constexpr int enlarge_threads = 96;
constexpr int enlarge_rows = 28;

/// Neighbouring numbers of one row of the result: from where, and with which weights.
template <class Out, Layout layout>
struct ColumnGroup {
    static constexpr int size = group_size<Out>;

    __device__ ColumnGroup(const AxisView& across, int begin) {
#pragma unroll
        for (int i = 0; i < size; ++i) {
            const int at = begin + i;
            const int x = layout == Layout::interleaved ? at / channels : at % across.out;
            const int channel = layout == Layout::interleaved ? at % channels : at / across.out;
            const int2 pair = __ldg(across.pairs + x);
            offset[i] = channels * pair.x + channel;
            weight[i] = __int_as_float(pair.y);
        }
    }

    /// The numbers of a row of the input, resized along it.
    __device__ void resize(const std::uint8_t* row, Group<Out>& out) const {
#pragma unroll
        for (int i = 0; i < size; ++i) {
            const float a = raise(__ldg(row + offset[i]));
            const float b = raise(__ldg(row + offset[i] + channels));
            out[i] = blend(a, step_between(a, b), weight[i]);
        }
    }

    Group<Out, int> offset;
    Group<Out> weight;
};

/// A thread computes a group of neighbouring numbers, which it stores at once, of some rows. It goes down them with two rows of
/// the input in registers, already resized along rows: each of these serves all the rows between them. Rows hold a whole number
/// of groups.
template <class Out, Layout layout>
__global__ void __launch_bounds__(enlarge_threads)
    enlarge_kernel(const std::uint8_t* in, ResizeTarget<Out> target, AxisView down, AxisView across,
                   int groups, unsigned blocks_per_image) {
    constexpr int size = group_size<Out>;
    const unsigned image = blockIdx.x / blocks_per_image;
    const int item = static_cast<int>((blockIdx.x % blocks_per_image) * blockDim.x + threadIdx.x);
    const int begin = item / groups * enlarge_rows;
    if (begin >= down.out)
        return;
    const int end = min(begin + enlarge_rows, down.out);
    const int number = item % groups * size; // of a row of all channels
    const ColumnGroup<Out, layout> columns(across, number);

    const int pitch = channels * across.in;
    const std::uint8_t* row = in + static_cast<std::size_t>(image) * static_cast<std::size_t>(down.in) *
                                       static_cast<std::size_t>(pitch);
    const int out_pitch = layout == Layout::interleaved ? channels * across.out : across.out;
    const int place = layout == Layout::interleaved
                          ? number
                          : number / across.out * down.out * across.out + number % across.out;
    Out* out = target.data +
               static_cast<std::size_t>(image) * channels * static_cast<std::size_t>(down.out) *
                   static_cast<std::size_t>(across.out) +
               place + static_cast<std::size_t>(begin) * static_cast<std::size_t>(out_pitch);

    int first = __ldg(down.pairs + begin).x;
    Group<Out> above;
    Group<Out> below;
    Group<Out> step;
    row += static_cast<std::size_t>(first) * static_cast<std::size_t>(pitch);
    columns.resize(row, below);
    --first;
    for (int y = begin; y < end; ++y, out += out_pitch) {
        const int2 pair = __ldg(down.pairs + y);
        if (pair.x != first) { // by one, as the image grows
            first = pair.x;
            row += pitch;
#pragma unroll
            for (int i = 0; i < size; ++i)
                above[i] = below[i];
            columns.resize(row, below);
#pragma unroll
            for (int i = 0; i < size; ++i)
                step[i] = step_between(above[i], below[i]);
        }
        Group<Out> value;
#pragma unroll
        for (int i = 0; i < size; ++i)
            value[i] = blend(above[i], step[i], __int_as_float(pair.y));
        store_group(value, target.normalize, out);
    }
}

} // namespace images::detail
