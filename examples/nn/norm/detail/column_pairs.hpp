/// \file
/// Two sums down each column of a matrix, of what a functor makes of each element, in a fixed order: the same bits in
/// every run. On the CPU here; column_pairs.cuh, which nvcc gets with this file, has the GPU's.
#pragma once

#include <algorithm>
#include <cstddef>

#include <nn/core/ceil_div.hpp>
#include <nn/core/vectors.hpp>
#include <sluice/backend/stream.hpp>

namespace nn::detail {

/// Parts that the rows are split into on a device, each summed by a block.
inline std::size_t row_parts(std::size_t rows) {
    return std::clamp<std::size_t>(ceil_div(rows, 64), 1, 1024);
}

/// Calls `functor.at<Width>(row, column, of_column, of_row, first, second)` for all elements, `Width` columns at a time, and then
/// `finish(column, sum of first, sum of second)` for each column. `functor.of_column<Width>(column)` loads what `at` needs of a
/// column, and `functor.of_row<Width>(row, column)` what it needs of an element: on a device several rows ahead. `scratch` holds `2 * columns * row_parts(rows)`.
template <std::size_t Width, class Functor, class Finish>
void column_pair_sums(sluice::HostStreamRef stream, std::size_t rows, std::size_t columns,
                      const Functor& functor, const Finish& finish, double* scratch) {
    static_assert(Width == 1);
    auto work = [rows, columns, functor, finish, scratch] {
        const Functor local = functor; // of whose members the compiler knows that no store changes them
        double* const first_sums = scratch;
        double* const second_sums = scratch + columns;
        std::fill_n(scratch, 2 * columns, 0.0);
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column) {
                float first[1];
                float second[1];
                local.template at<1>(row, column, local.template of_column<1>(column),
                                     local.template of_row<1>(row, column), first, second);
                first_sums[column] += static_cast<double>(first[0]);
                second_sums[column] += static_cast<double>(second[0]);
            }
        }
        for (std::size_t column = 0; column < columns; ++column)
            finish(column, first_sums[column], second_sums[column]);
    };
    static_assert(sizeof(work) <= sluice::host::Task::inline_bytes,
                  "the functors would be copied to the heap");
    stream.enqueue(std::move(work));
}

} // namespace nn::detail

#if defined(__CUDACC__)
#include <nn/norm/detail/column_pairs.cuh>
#endif
