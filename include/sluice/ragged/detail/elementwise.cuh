// Functions of each value on CUDA devices.
#pragma once

#include <cstdint>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/numbers.hpp>
#include <sluice/ragged/detail/row_tiles.cuh>
#include <sluice/ragged/elementwise.hpp>

namespace sluice::ragged::detail {

inline constexpr int values_of_thread = 4; ///< loads under way at once

template <class F, class U>
__global__ void __launch_bounds__(block_threads) fill_values_kernel(F f, U* out, const RaggedCounts* counts) {
    constexpr std::int64_t tile = values_of_thread * block_threads;
    const std::int64_t count = counts->values;
    for (std::int64_t base = blockIdx.x * tile + threadIdx.x; base < count; base += gridDim.x * tile) {
        U held[values_of_thread];
#pragma unroll
        for (int k = 0; k < values_of_thread; ++k) {
            if (base + k * block_threads < count)
                held[k] = static_cast<U>(f(base + k * block_threads));
        }
#pragma unroll
        for (int k = 0; k < values_of_thread; ++k) {
            if (base + k * block_threads < count)
                out[base + k * block_threads] = held[k];
        }
    }
}

/// Notes the row of each value of a tile.
struct NoteRows {
    std::uint16_t* row_of;
    template <int Lanes>
    __device__ void visit(int row, int begin, int length) const {
        for (int i = static_cast<int>(threadIdx.x) % Lanes; i < length; i += Lanes)
            row_of[spread(begin + i)] = static_cast<std::uint16_t>(row);
    }
};

template <class F, class U>
struct FillRows {
    const F& f;
    U* out;
    const TileMemory& memory;
    std::uint16_t* row_of;

    __device__ void tile(std::int64_t first, int count, std::int64_t begin, int size) const {
        for_rows_by_length(memory, count, NoteRows{row_of});
        __syncthreads();
        for (int base = static_cast<int>(threadIdx.x); base < size;
             base += values_of_thread * block_threads) {
            U held[values_of_thread];
#pragma unroll
            for (int k = 0; k < values_of_thread; ++k) {
                const int i = base + k * block_threads;
                if (i < size) {
                    const int row = row_of[spread(i)];
                    held[k] = static_cast<U>(f(first + row, begin + i - memory.offsets[row], begin + i));
                }
            }
#pragma unroll
            for (int k = 0; k < values_of_thread; ++k) {
                const int i = base + k * block_threads;
                if (i < size)
                    out[begin + i] = held[k];
            }
        }
    }
    __device__ void long_row(std::int64_t row, std::int64_t begin, std::int64_t length) const {
        for (std::int64_t base = threadIdx.x; base < length; base += values_of_thread * block_threads) {
            U held[values_of_thread];
#pragma unroll
            for (int k = 0; k < values_of_thread; ++k) {
                const std::int64_t i = base + k * block_threads;
                if (i < length)
                    held[k] = static_cast<U>(f(row, i, begin + i));
            }
#pragma unroll
            for (int k = 0; k < values_of_thread; ++k) {
                const std::int64_t i = base + k * block_threads;
                if (i < length)
                    out[begin + i] = held[k];
            }
        }
    }
};

template <class F, class U, class T>
__global__ void __launch_bounds__(block_threads, blocks_at_a_time)
    fill_rows_kernel(F f, U* out, RaggedView<const T> rows, std::int64_t width, std::int64_t* refused) {
    constexpr int capacity = 4096;
    __shared__ TileMemory memory;
    __shared__ std::uint16_t row_of[spread_size<capacity>];
    const std::int64_t longest = rows.longest();
    const bool fits = longest <= width;
    if (refused != nullptr && blockIdx.x == 0 && threadIdx.x == 0)
        *refused = fits ? 0 : longest;
    if (!fits)
        return;
    FillRows<F, U> work{f, out, memory, row_of};
    for_row_tiles<capacity>(rows, memory, work);
}

template <class F, class U, class T>
void fill_values(CudaStreamRef stream, const F& f, U* out, RaggedView<const T> rows) {
    if (rows.value_capacity() == 0)
        return;
    constexpr std::int64_t tile = values_of_thread * block_threads;
    // Enough for any device, whose blocks start one after another; each goes on where counts and grid say.
    const std::int64_t blocks = smaller((rows.value_capacity() + tile - 1) / tile, std::int64_t{1} << 20);
    detail::launch(fill_values_kernel<F, U>, static_cast<unsigned>(blocks), block_threads, stream.get(), f,
                   out, rows.counts_pointer());
}
template <class F, class U, class T>
void fill_rows(CudaStreamRef stream, const F& f, U* out, RaggedView<const T> rows, std::int64_t width,
               std::int64_t* refused) {
    detail::launch(fill_rows_kernel<F, U, T>, blocks_for_rows(rows), block_threads, stream.get(), f, out,
                   rows, width, refused);
}

} // namespace sluice::ragged::detail
