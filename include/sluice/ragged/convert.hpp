/// \file
/// Ragged batches to padded ones and back, and what describes a batch's shape. <sluice/ragged/reshape.hpp>
/// says what holds for all of these operations. For Host streams; CUDA streams need
/// <sluice/ragged/reshape.cuh>.
#pragma once

#include <cstdint>
#include <type_traits>

#include <sluice/memory/span.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// `out[i]` = the row that value i is in, for every value. `out` has at least `in.value_capacity()` elements,
/// of which those beyond `in.size()` are left alone.
template <AnyStream S, class V>
void row_ids(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> out,
             RaggedView<V> in);

/// `out[r]` = the length of row r. `out` has at least `in.row_capacity()` elements, of which those beyond
/// `in.rows()` are left alone.
template <AnyStream S, class V>
void lengths(const S& stream, std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> out,
             RaggedView<V> in);

/// Row r of `in` at the beginning of row r of `out`, [in.row_capacity(), width], and `fill` in all other
/// places, also in those of rows that are not there.
///
/// A row longer than `width` is not cut: `out` is `fill` everywhere then, and `refused`, one element in
/// device memory, becomes the length of the longest row. Otherwise `refused` becomes 0, or what `in` itself
/// could not hold. To cut rows on purpose, take their `prefix` first. Throws `Error` for a width below 1 or
/// an `out` of another size.
template <AnyStream S, class V>
void to_padded(const S& stream, std::type_identity_t<DeviceSpan<std::remove_const_t<V>, BackendOf<S>>> out,
               RaggedView<V> in, std::int64_t width, const std::type_identity_t<std::remove_const_t<V>>& fill,
               std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> refused);

/// 1 in the places of `out`, [in.row_capacity(), width], that `to_padded` puts a value in, and 0 in all
/// others. With a row longer than `width`, as for `to_padded`, 0 everywhere. Throws `Error` likewise.
template <AnyStream S, class V>
void to_mask(const S& stream, std::type_identity_t<DeviceSpan<std::uint8_t, BackendOf<S>>> out,
             RaggedView<V> in, std::int64_t width,
             std::type_identity_t<DeviceSpan<std::int64_t, BackendOf<S>>> refused);

/// A row for each element of `lengths`: the first `lengths[r]` values of row r of `padded`, [lengths.size(),
/// width].
///
/// A length above `width` leaves `out` without rows and its `refused` at the longest length, one below 0
/// counts as `width` + 1; so do more values than there is room for, with the number that is needed. Throws
/// `Error` for a width below 1, a `padded` of another size, or more rows than `out` has room for.
template <AnyStream S, class T>
void from_padded(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                 std::type_identity_t<DeviceSpan<const T, BackendOf<S>>> padded, std::int64_t width,
                 std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> lengths,
                 RaggedWorkspace<BackendOf<S>>& workspace);

/// A row for each row of `padded`, of `width` values each: those whose byte of `mask`, which is of the same
/// size, is not 0, wherever in the row they are, in their order. Values that do not fit leave `out` without
/// rows and its `refused` at the number that is needed. Throws `Error` for a width below 1, sizes that
/// disagree or are no multiple of `width`, or more rows than `out` has room for.
template <AnyStream S, class T>
void from_padded_mask(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                      std::type_identity_t<DeviceSpan<const T, BackendOf<S>>> padded, std::int64_t width,
                      std::type_identity_t<DeviceSpan<const std::uint8_t, BackendOf<S>>> mask,
                      RaggedWorkspace<BackendOf<S>>& workspace);

} // namespace sluice::ragged

#include <sluice/ragged/detail/convert.inl>
