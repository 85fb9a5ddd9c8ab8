/// \file
/// A separable blur in two steps: along columns in registers, as values come in, then along rows from shared memory.
#pragma once

#include <augment/operators/geometry.hpp>

namespace augment::detail {

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

} // namespace augment::detail
