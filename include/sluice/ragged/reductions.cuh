/// \file
/// The operations of reductions.hpp on CUDA streams.
#pragma once

#include <sluice/ragged/detail/long_rows.cuh>
#include <sluice/ragged/reductions.hpp>

namespace sluice::ragged {

template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void sum(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace = nullptr);
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void mean(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace = nullptr);
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void max(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace = nullptr);
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void min(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace = nullptr);
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void argmax(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace = nullptr);
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void logsumexp(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace = nullptr);

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
    const LongParts<typename Op::Accumulator>& list;
    unsigned long long& place;

    __device__ void tile(std::int64_t first, int count, std::int64_t begin, int size) const {
        stage(staged, values + begin, size);
        for_rows_by_length(memory, count, ReduceTile<Op, T>{op, out + first, staged});
    }
    __device__ void long_row(std::int64_t row, std::int64_t begin, std::int64_t length) const {
        if (list.count != nullptr && length > part_values) {
            note_long_row(list, row, begin, length, part_values, place);
            return;
        }
        const auto reduced = merge_block(op, reduce_strided(op, values + begin, length), partials);
        if (threadIdx.x == 0)
            out[row] = op.finish(reduced, length);
    }
};

template <class Op, class T>
__global__ void __launch_bounds__(block_threads, blocks_at_a_time)
    reduce_rows_kernel(Op op, typename Op::Result* out, RaggedView<const T> rows,
                       LongParts<typename Op::Accumulator> list) {
    constexpr int capacity = tile_values<sizeof(T)>;
    __shared__ TileMemory memory;
    __shared__ T staged[spread_size<capacity>];
    __shared__ typename Op::Accumulator partials[block_warps];
    __shared__ unsigned long long place;
    ReduceRows<Op, T> work{op, out, rows.values(), memory, staged, partials, list, place};
    for_row_tiles<capacity>(rows, memory, work);
}

template <class Op, class T>
void reduce_rows(CudaStreamRef stream, const Op& op, typename Op::Result* out, RaggedView<const T> rows,
                 RaggedWorkspace<Cuda>* workspace) {
    using Accumulator = typename Op::Accumulator;
    if (rows.row_capacity() == 0)
        return;
    const std::int64_t values = rows.value_capacity();
    LongParts<Accumulator> list;
    if (workspace != nullptr && values > part_values) {
        RaggedScratch<Cuda> scratch = workspace->scratch();
        list = long_parts<Accumulator>(stream, scratch, values, part_values, most_parts(values, part_values));
    }
    const unsigned blocks = blocks_for_rows(rows);
    reduce_rows_kernel<Op, T><<<blocks, block_threads, 0, stream.native()>>>(op, out, rows, list);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    if (list.count == nullptr)
        return;
    const unsigned more = blocks_for_parts(blocks, values);
    reduce_parts_kernel<Op, T><<<more, block_threads, 0, stream.native()>>>(op, rows.values(), list);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    merge_parts_kernel<Op><<<more, block_threads, 0, stream.native()>>>(op, out, list);
    SLUICE_CUDA_CHECK(cudaGetLastError());
}

} // namespace detail

template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void sum(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace) {
    detail::reduce_into_sums<detail::SumOf>(stream, "sum", out, detail::input_view(rows), workspace);
}
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void mean(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace) {
    detail::reduce_into_sums<detail::MeanOf>(stream, "mean", out, detail::input_view(rows), workspace);
}
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void max(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, true>>(
        stream, "max", out, detail::input_view(rows), workspace);
}
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void min(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace) {
    detail::reduce_into<detail::ExtremeOf<detail::InputValue<Rows>, false>>(
        stream, "min", out, detail::input_view(rows), workspace);
}
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void argmax(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace) {
    detail::reduce_into<detail::ArgmaxOf<detail::InputValue<Rows>>>(stream, "argmax", out,
                                                                    detail::input_view(rows), workspace);
}
template <detail::DeviceMemory<Cuda> Out, detail::RowsOn<Cuda> Rows>
void logsumexp(CudaStreamRef stream, Out&& out, const Rows& rows, RaggedWorkspace<Cuda>* workspace) {
    detail::reduce_into<detail::LogSumExpOf<detail::InputValue<Rows>>>(stream, "logsumexp", out,
                                                                       detail::input_view(rows), workspace);
}

} // namespace sluice::ragged
