/// \file
/// Launches of the kernels that sort rows.
#pragma once

#include <cstdint>

#include <sluice/ragged/detail/launch.cuh>
#include <sluice/ragged/detail/numbers.hpp>
#include <sluice/ragged/detail/sort_long.cuh>
#include <sluice/ragged/detail/sort_tiles.cuh>
#include <sluice/ragged/sort.hpp>

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
    detail::launch(sort_tiles_kernel<Positions, T>, blocks, block_threads, stream.get(), sort, more);
    if (values <= chunk)
        return;
    const auto long_blocks = static_cast<unsigned>(smaller(blocks, most_long_parts(values, chunk)));
    detail::launch(sort_chunks_kernel<Positions, T>, long_blocks, block_threads, stream.get(), sort, more);
    for (int pass = 0; pass < merge_passes<T>(values); ++pass) {
        detail::launch(merge_chunks_kernel<Positions, T>, long_blocks, block_threads, stream.get(), sort,
                       more, pass);
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
