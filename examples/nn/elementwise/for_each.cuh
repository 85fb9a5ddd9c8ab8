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

/// `Index` is 32 bits wide where the matrix allows it, for the sake of the division.
template <class Index, class Functor>
__global__ void __launch_bounds__(threads_per_block)
    element_kernel(std::size_t count, Index columns, Functor functor) {
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * threads_per_block + threadIdx.x;
    sluice::wait_for_earlier_kernels();
    if (i < count) {
        const Index row = static_cast<Index>(i) / columns;
        functor(static_cast<std::size_t>(row), i - static_cast<std::size_t>(row) * columns);
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
    const sluice::KernelDims dims{.grid = blocks_for(count), .block = threads_per_block};
    if (count <= std::numeric_limits<std::uint32_t>::max()) {
        sluice::launch_early(stream, dims, element_kernel<std::uint32_t, Functor>, count,
                             static_cast<std::uint32_t>(columns), functor);
    } else {
        sluice::launch_early(stream, dims, element_kernel<std::size_t, Functor>, count, columns, functor);
    }
}

} // namespace nn::detail
