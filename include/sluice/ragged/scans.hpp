/// \file
/// From rows to rows of the same lengths: softmax and exclusive sum.
///
/// Both take `(stream, out, rows)`. `rows` is a `RaggedView` or a `RaggedBatch`; `out` takes one value for each of
/// its values: device memory (a buffer or a `DeviceSpan`) with as much room as `rows` has, or a view over the same
/// rows (`RaggedView::over`, `RaggedColumn::view_over`), else `Error` is thrown. It may be `rows` itself where the
/// types agree, and overlap it in no other way, or `Error` is thrown. Nothing waits, nothing is allocated, and both can be captured.
///
/// For Host streams; CUDA streams need scans.cuh. There a `workspace` lets all blocks share long rows, and the same row
/// gives the same bits in every batch and run; both as in reductions.hpp.
#pragma once

#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// `out` = exp(value - m) / Σ exp(value - m) in each row, with m the row's greatest value. A row that holds a NaN or
/// +infinity, or nothing but -infinity, becomes NaN as a whole, as in PyTorch. Values and `out` are both float or both double.
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void softmax(const S& stream, Out&& out, const Rows& rows,
             RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

/// `out` = the sum of the values before this one in its row, 0 for the first, in the type of `out`'s elements, of which integers wrap around.
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void exclusive_sum(const S& stream, Out&& out, const Rows& rows,
                   RaggedWorkspace<BackendOf<S>>* workspace = nullptr);

} // namespace sluice::ragged

#include <sluice/ragged/detail/scans.inl>
