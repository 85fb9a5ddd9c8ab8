/// \file
/// The rows of a ragged batch by their length. <sluice/ragged/reshape.hpp> says what holds for all of these
/// operations. For Host streams; CUDA streams need <sluice/ragged/reshape.cuh>.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include <sluice/memory/span.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// Which rows come first.
enum class LengthOrder {
    shortest_first, ///< those with the fewest values
    longest_first,  ///< those with the most
};

/// The numbers of the rows in the order of their lengths, rows of one length in their own: what `reorder`
/// takes. `order` has at least `in.row_capacity()` elements; after those of the rows, -1 up to there.
template <AnyStream S, class V>
void order_by_length(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> order,
                     RaggedView<V> in, LengthOrder direction, RaggedWorkspace<BackendOf<S>>& workspace);

/// Bounds that `bucket_by_length` takes.
inline constexpr std::size_t most_bucket_bounds = 12;

/// The numbers of the rows by bucket, those of one bucket in their own order. Bucket 0 holds the rows that
/// are shorter than `bounds[0]`, bucket b those from `bounds[b - 1]` up to, and without, `bounds[b]`, and the
/// last one, number `bounds.size()`, all others.
///
/// `order` as for `order_by_length`. Bucket b begins at `order[starts[b]]` and ends before `order[starts[b +
/// 1]]`; `starts` has `bounds.size()` + 2 elements. Throws `Error` for more than `most_bucket_bounds` bounds,
/// or some that do not increase.
template <AnyStream S, class V>
void bucket_by_length(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> order,
                      std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> starts, RaggedView<V> in,
                      std::span<const std::int64_t> bounds, RaggedWorkspace<BackendOf<S>>& workspace);

} // namespace sluice::ragged

#include <sluice/ragged/detail/order.inl>
