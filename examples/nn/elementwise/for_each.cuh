/// \file
/// Runs a functor for every index, on a device: a thread for each.
#pragma once

#include <limits>

#include <sluice/backend/launch.hpp>

#include <nn/core/ceil_div.hpp>
#include <nn/elementwise/for_each.hpp>

namespace nn::detail {

inline constexpr unsigned threads_per_block = 256;

template <class Functor>
__global__ void __launch_bounds__(threads_per_block) index_kernel(std::size_t count, Functor functor) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads_per_block + threadIdx.x;
    sluice::wait_for_earlier_kernels();
    if (i < count)
        functor(i);
    sluice::let_next_kernel_begin();
}

template <class Functor>
__global__ void __launch_bounds__(threads_per_block)
    element_kernel(std::size_t count, std::size_t columns, Functor functor) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads_per_block + threadIdx.x;
    const std::size_t row = quotient(i, columns);
    sluice::wait_for_earlier_kernels();
    if (i < count)
        functor(row, i - row * columns);
    sluice::let_next_kernel_begin();
}

/// Rows that a thread takes: it loads a column's constants once, and the rows' elements before it works on the first of them.
inline constexpr std::size_t rows_of_thread = 4;

/// From the last rows to the first: the kernel before wrote the last ones last, and the next one reads the first ones first, so
/// that the L2 cache has both.
template <std::size_t Width, class Functor>
__global__ void __launch_bounds__(threads_per_block)
    row_kernel(std::size_t rows, std::size_t vectors, Functor functor) {
    const std::size_t i =
        static_cast<std::size_t>(gridDim.x - 1 - blockIdx.x) * threads_per_block + threadIdx.x;
    const std::size_t group = quotient(i, vectors);
    const std::size_t column = (i - group * vectors) * Width;
    const std::size_t first = group * rows_of_thread;
    sluice::wait_for_earlier_kernels();
    if (first < rows) {
        const auto constants = functor.template of_column<Width>(column);
        typename Functor::template Row<Width> ahead[rows_of_thread];
#pragma unroll
        for (std::size_t k = 0; k < rows_of_thread; ++k) {
            if (first + k < rows)
                ahead[k] = functor.template of_row<Width>(first + k, column);
        }
#pragma unroll
        for (std::size_t k = 0; k < rows_of_thread; ++k) {
            if (first + k < rows)
                functor.template at<Width>(first + k, column, constants, ahead[k]);
        }
    }
    sluice::let_next_kernel_begin();
}

inline unsigned blocks_for(std::size_t count) {
    const std::size_t blocks = ceil_div(count, threads_per_block);
    if (blocks > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
        throw sluice::Error("an operator was asked for " + std::to_string(count) +
                            " elements, more than one launch takes");
    }
    return static_cast<unsigned>(blocks);
}

template <class Functor>
void for_each(sluice::CudaStreamRef stream, std::size_t count, const Functor& functor) {
    if (count == 0)
        return;
    sluice::launch_early(stream, {.grid = blocks_for(count), .block = threads_per_block},
                         index_kernel<Functor>, count, functor);
}

template <class Functor>
void for_each(sluice::CudaStreamRef stream, std::size_t rows, std::size_t columns, const Functor& functor) {
    const std::size_t count = rows * columns;
    if (count == 0)
        return;
    sluice::launch_early(stream, {.grid = blocks_for(count), .block = threads_per_block},
                         element_kernel<Functor>, count, columns, functor);
}

template <std::size_t Width, class Functor>
void for_each_row(sluice::CudaStreamRef stream, std::size_t rows, std::size_t columns,
                  const Functor& functor) {
    const std::size_t vectors = columns / Width;
    const std::size_t count = ceil_div(rows, rows_of_thread) * vectors;
    if (count == 0)
        return;
    sluice::launch_early(stream, {.grid = blocks_for(count), .block = threads_per_block},
                         row_kernel<Width, Functor>, rows, vectors, functor);
}

} // namespace nn::detail
