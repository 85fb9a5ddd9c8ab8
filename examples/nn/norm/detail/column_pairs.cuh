/// \file
/// Two sums down each column of a matrix, on a device: a block for some of the rows, then one for some of the columns.
#pragma once

#include <nn/norm/detail/column_pairs.hpp>

namespace nn::detail {

inline constexpr unsigned column_pair_threads = 256;
/// Rows that a thread loads before it works on the first of them: what it stores may be what it loads, for all that the compiler
/// knows, so that it would wait for each row by itself.
inline constexpr unsigned column_pair_rows = 4;

/// Where the sums of a block's threads meet: [row of threads][vector of columns][first, second].
template <std::size_t Width, class Functor>
__global__ void __launch_bounds__(column_pair_threads)
    column_pair_parts(std::size_t rows, unsigned columns, std::size_t rows_per_part, unsigned lanes,
                      Functor functor, double* parts) {
    __shared__ float shared[2 * Width][column_pair_threads];
    const unsigned lane = threadIdx.x % lanes; // of the vectors of columns
    const unsigned line = threadIdx.x / lanes; // of the rows that a block takes at once
    const unsigned lines = column_pair_threads / lanes;
    const std::size_t column = (blockIdx.y * lanes + lane) * Width;
    const bool is_used = line < lines && column < columns;
    float first_sums[Width] = {};
    float second_sums[Width] = {};
    if (is_used) {
        const std::size_t begin = blockIdx.x * rows_per_part;
        const std::size_t end = min(rows, begin + rows_per_part);
        const auto constants = functor.template of_column<Width>(column);
        const auto add = [&](std::size_t row, const auto& loaded) {
            float first[Width];
            float second[Width];
            functor.template at<Width>(row, column, constants, loaded, first, second);
            for (std::size_t i = 0; i < Width; ++i) {
                first_sums[i] += first[i];
                second_sums[i] += second[i];
            }
        };
        std::size_t row = begin + line;
        for (; row + (column_pair_rows - 1) * lines < end; row += column_pair_rows * lines) {
            typename Functor::template Row<Width> ahead[column_pair_rows];
#pragma unroll
            for (unsigned i = 0; i < column_pair_rows; ++i)
                ahead[i] = functor.template of_row<Width>(row + i * lines, column);
#pragma unroll
            for (unsigned i = 0; i < column_pair_rows; ++i)
                add(row + i * lines, ahead[i]);
        }
        for (; row < end; row += lines)
            add(row, functor.template of_row<Width>(row, column));
    }
    for (std::size_t i = 0; i < Width; ++i) {
        shared[2 * i][threadIdx.x] = first_sums[i];
        shared[2 * i + 1][threadIdx.x] = second_sums[i];
    }
    __syncthreads();
    // A thread for each column and sum; the lines in order, in float64.
    for (unsigned sum = threadIdx.x; sum < 2 * Width * lanes; sum += column_pair_threads) {
        const auto of_lane = static_cast<unsigned>(sum / (2 * Width));
        const auto of_value = static_cast<unsigned>(sum % (2 * Width));
        const std::size_t to = (blockIdx.y * lanes + of_lane) * Width + of_value / 2;
        if (to >= columns)
            continue;
        double total = 0.0;
        for (unsigned i = 0; i < lines; ++i)
            total += static_cast<double>(shared[of_value][i * lanes + of_lane]);
        parts[(2 * static_cast<std::size_t>(blockIdx.x) + of_value % 2) * columns + to] = total;
    }
}

/// Few columns a block, so that there are enough blocks for a matrix of 64 columns; a line of 64 bytes each.
inline constexpr unsigned finish_columns = 8;
inline constexpr unsigned finish_lines = 64;

/// A block for some columns, in which each row of threads adds up its share of the parts, and then the rows are added in pairs.
template <class Finish>
__global__ void __launch_bounds__(finish_columns* finish_lines)
    column_pair_finish(unsigned parts, unsigned columns, const double* sums, Finish finish) {
    __shared__ double first_sums[finish_lines][finish_columns];
    __shared__ double second_sums[finish_lines][finish_columns];
    const unsigned column = blockIdx.x * finish_columns + threadIdx.x;
    const unsigned line = threadIdx.y;
    double first = 0.0;
    double second = 0.0;
    if (column < columns) {
#pragma unroll 8
        for (unsigned part = line; part < parts; part += finish_lines) {
            first += sums[2 * static_cast<std::size_t>(part) * columns + column];
            second += sums[(2 * static_cast<std::size_t>(part) + 1) * columns + column];
        }
    }
    first_sums[line][threadIdx.x] = first;
    second_sums[line][threadIdx.x] = second;
    for (unsigned half = finish_lines / 2; half > 0; half /= 2) {
        __syncthreads();
        if (line < half) {
            first_sums[line][threadIdx.x] += first_sums[line + half][threadIdx.x];
            second_sums[line][threadIdx.x] += second_sums[line + half][threadIdx.x];
        }
    }
    if (line == 0 && column < columns)
        finish(column, first_sums[0][threadIdx.x], second_sums[0][threadIdx.x]);
}

template <std::size_t Width, class Functor, class Finish>
void column_pair_sums(sluice::CudaStreamRef stream, std::size_t rows, std::size_t columns,
                      const Functor& functor, const Finish& finish, double* scratch) {
    const std::size_t vectors = columns / Width;
    const auto lanes = static_cast<unsigned>(std::min<std::size_t>(vectors, column_pair_threads));
    const auto parts = static_cast<unsigned>(row_parts(rows));
    const dim3 blocks(parts, static_cast<unsigned>(ceil_div(vectors, lanes)));
    column_pair_parts<Width><<<blocks, column_pair_threads, 0, stream.get()>>>(
        rows, static_cast<unsigned>(columns), ceil_div(rows, parts), lanes, functor, scratch);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    const dim3 threads(finish_columns, finish_lines);
    column_pair_finish<<<static_cast<unsigned>(ceil_div(columns, finish_columns)), threads, 0,
                         stream.get()>>>(parts, static_cast<unsigned>(columns), scratch, finish);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace nn::detail
