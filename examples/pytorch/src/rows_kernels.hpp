/// \file
/// The launches of row operations on a GPU, which rows_cuda.cu defines for float, double, std::int32_t and std::int64_t.
/// They enqueue on `stream`, wait for nothing and allocate nothing. Offsets that make no sense are not followed: results
/// of such rows, or all of them, are NaN then, of integers 0.
#pragma once

#include <cstddef>

#include <sluice/backend/stream.hpp>

#include "rows.hpp"

namespace sluice_torch {

/// Values up to which a sum and a maximum are one kernel, which needs no counts.
inline constexpr std::int64_t most_at_once = std::int64_t{1} << 22;

/// `counts` is room for one `sluice::RaggedCounts` in device memory.
template <class T>
void launch_row_sum(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts,
                    T* out);
template <class T>
void launch_row_max(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts, T* out,
                    std::int64_t* positions);
template <class T>
void launch_row_softmax(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts,
                        T* out);

/// Bytes of temporary memory that a sort needs.
template <class T>
std::size_t row_sort_bytes(const RowsIn<T>& rows);
template <class T>
void launch_row_sort(sluice::CudaStreamRef stream, const RowsIn<T>& rows, sluice::RaggedCounts* counts,
                     T* out, std::int64_t* positions, bool descending, std::byte* memory, std::size_t bytes);

template <class Body, class T>
void launch_row_map(sluice::CudaStreamRef stream, const RowsIn<T>& rows, const Body& body);

} // namespace sluice_torch
