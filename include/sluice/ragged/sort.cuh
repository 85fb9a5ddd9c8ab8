/// \file
/// The operations of sort.hpp on CUDA streams. A plain C++ compiler takes of it what is for Host streams.
///
/// A row of up to 32 values (16, of 8 bytes) is sorted by one thread in its registers (K. Batcher's network that merges
/// odd and even ones), or, where positions are wanted as well, by lanes that exchange theirs (his bitonic network); one
/// of up to 256 by a warp, one that fits into a tile by a block. Longer ones are sorted in chunks, which are then merged pair by
/// pair by the whole device (along merge paths: O. Green, R. McColl, D. Bader, "GPU merge path", ICS 2012), in as
/// many launches as the longest row that there is room for would need.
#pragma once

#include <sluice/ragged/sort.hpp>

#if defined(__CUDACC__) && SLUICE_HAS_CUDA

#include <sluice/ragged/detail/sort_long.cuh>
#include <sluice/ragged/detail/sort_tiles.cuh>

// ---------------------------------------------------------------------------------------------------------------

namespace sluice::ragged::detail {

template <bool Positions, class T>
void launch_sort(CudaStreamRef stream, const SortArguments<T>& sort, RaggedWorkspace<Cuda>& workspace) {
    constexpr std::int64_t chunk = sort_capacity<T>;
    const std::int64_t values = sort.rows.value_capacity();
    LongRows<T> more;
    if (values > chunk) {
        RaggedScratch<Cuda> scratch = workspace.scratch();
        more.list = long_parts<T>(stream, scratch, values, chunk, values);
        if constexpr (Positions)
            more.positions = scratch.template take<std::int64_t>(values);
    }
    const unsigned blocks = blocks_for_rows(sort.rows);
    sort_tiles_kernel<Positions><<<blocks, block_threads, 0, stream.get()>>>(sort, more);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    if (values <= chunk)
        return;
    const auto long_blocks = static_cast<unsigned>(std::min<std::int64_t>(blocks, most_parts(values, chunk)));
    sort_chunks_kernel<Positions><<<long_blocks, block_threads, 0, stream.get()>>>(sort, more);
    SLUICE_CUDA_CHECK(cudaGetLastError());
    for (int pass = 0; pass < merge_passes<T>(values); ++pass) {
        merge_chunks_kernel<Positions><<<long_blocks, block_threads, 0, stream.get()>>>(sort, more, pass);
        SLUICE_CUDA_CHECK(cudaGetLastError());
    }
}

template <class T>
void sort_rows(CudaStreamRef stream, const SortArguments<T>& sort, RaggedWorkspace<Cuda>& workspace) {
    if (sort.rows.row_capacity() == 0 || sort.rows.value_capacity() == 0)
        return;
    if (sort.positions != nullptr) {
        launch_sort<true>(stream, sort, workspace);
    } else {
        launch_sort<false>(stream, sort, workspace);
    }
}

} // namespace sluice::ragged::detail

#endif
