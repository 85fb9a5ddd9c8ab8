/// \file
/// One number from each row: sum, mean, maximum, minimum, where the maximum is, and log-sum-exp.
///
/// All take `(stream, out, rows)`. `rows` is a `RaggedView` or a `RaggedBatch`; `out` is device memory (a buffer or a
/// `DeviceSpan`) with room for one element for each row that `rows` has room for, and not the memory of the values, or
/// else `Error` is thrown. Elements beyond the rows stay as they are. Nothing waits, nothing is allocated, and how many rows
/// there are is read where the work runs, so that a captured graph serves any batch that fits.
///
/// For Host streams; CUDA streams need reductions.cuh. There, a row of more than 1,024 values is one block's, unless a
/// `workspace` is given, with room for as much as `rows`: then rows of more than 16,384 values are shared among all
/// blocks, for two further launches. One that is too small is an `Error`, on Host streams as well. The order in which a
/// row is added up depends on its length alone (and on whether there is a workspace): the same row gives the same bits
/// in every batch and run.
#pragma once

#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// `out[r]` = the sum of row r, added up in the type of `out`'s elements, of which integers wrap around; 0 for an empty row.
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void sum(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The mean, added up and divided in the type of `out`'s elements, float or double; NaN for an empty row.
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void mean(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The greatest value; NaN if there is one in the row. For an empty row -infinity, or of integers the lowest.
/// `out`'s elements are of the values' type. Values are of a type that `std::numeric_limits` knows.
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void(max)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The least value; NaN if there is one in the row. For an empty row +infinity, or of integers the greatest. Of the same types.
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void(min)(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// The position in its row, from 0 on, of the greatest value, or of the first NaN; of equal ones the first. -1 for an
/// empty row. `out`'s elements are `std::int64_t`.
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void argmax(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// log(Σ exp(value)), without overflow; -infinity for an empty row. Values and `out` are both float or both double.
template <AnyStream S, DeviceMemory<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void logsumexp(const S& stream, Out&& out, const Rows& rows,
               RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

} // namespace sluice::ragged

#include <sluice/ragged/detail/reductions.inl>
