/// \file
/// Sorts the values of each row.
///
/// Integers and floating-point numbers sort by value; -0 and +0 are equal, and a NaN stands beyond the infinity of its
/// sign. Equal values keep their order, in both directions. `out` is as in scans.hpp, and not the memory of `rows`.
/// `workspace` has room for as much as `rows`; it serves one operation at a time. Nothing waits, nothing is allocated,
/// and both operations can be captured.
///
/// For Host streams; CUDA streams need sort.cuh.
#pragma once

#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// Which values come first.
enum class Order {
    ascending,  ///< the least
    descending, ///< the greatest
};

/// `out` = the values of each row in order. Throws `Error` when `out` or the workspace is too small, or `out` overlaps
/// the values of `rows`.
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RowsOn<BackendOf<S>> Rows>
void sort(const S& stream, Out&& out, const Rows& rows, RaggedWorkspace<BackendOf<S>>& workspace,
          Order order = Order::ascending);

/// The same, and where each value was in its row, from 0 on, into `positions`, which is like `out` but of
/// `std::int64_t`, and overlaps neither of the others.
template <AnyStream S, RaggedValues<BackendOf<S>> Out, RaggedValues<BackendOf<S>> Positions,
          RowsOn<BackendOf<S>> Rows>
void sort_with_positions(const S& stream, Out&& out, Positions&& positions, const Rows& rows,
                         RaggedWorkspace<BackendOf<S>>& workspace, Order order = Order::ascending);

} // namespace sluice::ragged

#include <sluice/ragged/detail/sort.inl>
