/// \file
/// The operations of reductions.hpp on CUDA streams.
#pragma once

#include <sluice/ragged/detail/row_tiles.cuh>
#include <sluice/ragged/reductions.hpp>

namespace sluice::ragged {

template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void sum(CudaStreamRef stream, Out&& out, const Rows& rows);
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void mean(CudaStreamRef stream, Out&& out, const Rows& rows);
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void max(CudaStreamRef stream, Out&& out, const Rows& rows);
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void min(CudaStreamRef stream, Out&& out, const Rows& rows);
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void argmax(CudaStreamRef stream, Out&& out, const Rows& rows);
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void logsumexp(CudaStreamRef stream, Out&& out, const Rows& rows);

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

template <class Op, class T>
struct ReduceTile {
    const Op& op;
    typename Op::Result* out; ///< of the tile's first row
    const T* values;          ///< in shared memory

    template <int Lanes>
    __device__ void visit(int row, int begin, int length) const {
        const int lane = static_cast<int>(threadIdx.x) % Lanes;
        typename Op::Accumulator accumulator = op.init();
        for (int i = lane; i < length; i += Lanes)
            accumulator = op.take(accumulator, values[spread(begin + i)], i);
        accumulator = merge_lanes<Lanes>(op, accumulator);
        if (lane == 0)
            out[row] = op.finish(accumulator, length);
    }
};

template <class Op, class T>
struct ReduceRows {
    const Op& op;
    typename Op::Result* out;
    const T* values;
    const TileMemory& memory;
    T* staged;
    typename Op::Accumulator* partials;

    __device__ void tile(std::int64_t first, int count, std::int64_t begin, int size) const {
        stage(staged, values + begin, size);
        for_rows_by_length(memory, count, ReduceTile<Op, T>{op, out + first, staged});
    }
    __device__ void long_row(std::int64_t row, std::int64_t begin, std::int64_t length) const {
        const auto reduced = merge_block(op, reduce_strided(op, values + begin, length), partials);
        if (threadIdx.x == 0)
            out[row] = op.finish(reduced, length);
    }
};

template <class Op, class T>
__global__ void __launch_bounds__(block_threads, blocks_at_a_time)
    reduce_rows_kernel(Op op, typename Op::Result* out, RaggedView<const T> rows) {
    constexpr int capacity = tile_values<sizeof(T)>;
    __shared__ TileMemory memory;
    __shared__ T staged[spread_size<capacity>];
    __shared__ typename Op::Accumulator partials[block_warps];
    ReduceRows<Op, T> work{op, out, rows.values(), memory, staged, partials};
    for_row_tiles<capacity>(rows, memory, work);
}

template <class Op, class T>
void reduce_rows(CudaStreamRef stream, const Op& op, typename Op::Result* out, RaggedView<const T> rows) {
    if (rows.row_capacity() == 0)
        return;
    reduce_rows_kernel<Op, T><<<blocks_for_rows(rows), block_threads, 0, stream.native()>>>(op, out, rows);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace detail

template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void sum(CudaStreamRef stream, Out&& out, const Rows& rows) {
    detail::reduce_into_sums<detail::SumOf>(stream, "sum", out, detail::input_view(rows));
}
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void mean(CudaStreamRef stream, Out&& out, const Rows& rows) {
    detail::reduce_into_sums<detail::MeanOf>(stream, "mean", out, detail::input_view(rows));
}
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void max(CudaStreamRef stream, Out&& out, const Rows& rows) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, true>>(stream, "max", out,
                                                                           detail::input_view(rows));
}
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void min(CudaStreamRef stream, Out&& out, const Rows& rows) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, false>>(stream, "min", out,
                                                                            detail::input_view(rows));
}
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void argmax(CudaStreamRef stream, Out&& out, const Rows& rows) {
    detail::reduce_into<detail::ArgmaxOf<detail::InputValue<Rows>>>(stream, "argmax", out,
                                                                    detail::input_view(rows));
}
template <detail::DeviceMemory<Cuda> Out, detail::RaggedInput Rows>
void logsumexp(CudaStreamRef stream, Out&& out, const Rows& rows) {
    detail::reduce_into<detail::LogSumExpOf<detail::InputValue<Rows>>>(stream, "logsumexp", out,
                                                                       detail::input_view(rows));
}

} // namespace sluice::ragged
