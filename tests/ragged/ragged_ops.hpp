// Small pieces of work on ragged rows, the same on both backends: a task on a host stream, a kernel on a device's
// (ragged_ops.cu).
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/default.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice::test {

using Number = std::uint32_t;

namespace ops {

/// `sums[r]` = the sum of row r's values, modulo 2^32; those beyond the rows stay as they are. `rows_of[i]` = the row
/// that value i is in, likewise.
SLUICE_HOST_DEVICE inline void sum_row(RaggedView<const Number> rows, Number* sums, std::int64_t row) {
    Number sum = 0;
    for (const Number value : rows.row(row))
        sum += value;
    sums[row] = sum;
}

inline void sums_and_rows(host::Queue* stream, RaggedView<const Number> rows, Number* sums,
                          std::int64_t* rows_of) {
    Host::enqueue(stream, [=] {
        for (std::int64_t row = 0; row < rows.rows(); ++row)
            sum_row(rows, sums, row);
        for (std::int64_t i = 0; i < rows.size(); ++i)
            rows_of[i] = rows.row_of(i);
    });
}

/// Makes a row of each number of `lengths`, with the values 0, 1, 2 …, or leaves a refusal.
SLUICE_HOST_DEVICE inline void count_up(RaggedTarget<Number> target, const std::int64_t* lengths,
                                        std::int64_t rows) {
    std::int64_t size = 0;
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        size += lengths[row];
        longest = lengths[row] > longest ? lengths[row] : longest;
    }
    if (!target.fits(rows, size)) {
        if (rows > target.row_capacity)
            target.refuse(rows, RaggedExcess::rows);
        else
            target.refuse(size);
        return;
    }
    target.offsets[0] = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        target.offsets[row + 1] = target.offsets[row] + lengths[row];
        for (std::int64_t i = 0; i < lengths[row]; ++i)
            target.values[target.offsets[row] + i] = static_cast<Number>(i);
    }
    *target.counts = RaggedCounts{rows, size, longest, 0};
}

inline void make_rows(host::Queue* stream, RaggedTarget<Number> target, const std::int64_t* lengths,
                      std::int64_t rows) {
    Host::enqueue(stream, [=] { count_up(target, lengths, rows); });
}

#if SLUICE_HAS_CUDA
void sums_and_rows(cudaStream_t stream, RaggedView<const Number> rows, Number* sums, std::int64_t* rows_of);
void make_rows(cudaStream_t stream, RaggedTarget<Number> target, const std::int64_t* lengths,
               std::int64_t rows);
/// Has the kernels loaded, so that no capture has to.
void load_ragged_kernels();
#endif

} // namespace ops

} // namespace sluice::test
