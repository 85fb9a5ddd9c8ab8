/// \file
/// Some of a ragged batch's rows or values. <sluice/ragged/reshape.hpp> says what holds for all of these
/// operations. For Host streams; CUDA streams need <sluice/ragged/reshape.cuh>.
#pragma once

#include <cstdint>
#include <type_traits>

#include <sluice/memory/span.hpp>
#include <sluice/ragged/operands.hpp>
#include <sluice/ragged/ragged_batch.hpp>
#include <sluice/ragged/view.hpp>
#include <sluice/ragged/workspace.hpp>

namespace sluice::ragged {

/// The rows `first` up to, and without, `last`; fewer where there are not so many. Throws `Error` unless
/// 0 <= first <= last.
template <AnyStream S, class T>
void slice(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
           std::int64_t first, std::int64_t last, RaggedWorkspace<BackendOf<S>>& workspace);

/// Of each row the values `first` up to, and without, `last`; fewer where there are not so many. Throws
/// `Error` unless 0 <= first <= last.
template <AnyStream S, class T>
void slice_within(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                  std::type_identity_t<RaggedView<const T>> in, std::int64_t first, std::int64_t last,
                  RaggedWorkspace<BackendOf<S>>& workspace);

/// The first `most` values of each row, or all of a shorter one. Throws `Error` below 0.
template <AnyStream S, class T>
void prefix(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
            std::int64_t most, RaggedWorkspace<BackendOf<S>>& workspace);

/// Row r of `out` is row `indices[r]` of `in`, for each of the indices, some of which may be equal. An index
/// that names no row (below 0, or `rows()` and above) gives an empty one.
template <AnyStream S, class T>
void gather(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
            std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> indices,
            RaggedWorkspace<BackendOf<S>>& workspace);

/// The same for the first `in.rows()` of the indices, a number that only the device knows: the rows in
/// another order, such as that of `order_by_length`. `order` has at least `in.row_capacity()` elements.
template <AnyStream S, class T>
void reorder(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
             std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> order,
             RaggedWorkspace<BackendOf<S>>& workspace);

/// The values whose element of `keep` is not 0, in as many rows as there were. `keep` has at least
/// `in.value_capacity()` elements, of which those beyond `in.size()` do not matter.
template <AnyStream S, class T>
void mask(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
          std::type_identity_t<DeviceSpan<const std::uint8_t, BackendOf<S>>> keep,
          RaggedWorkspace<BackendOf<S>>& workspace);

/// The rows whose element of `keep` is not 0. `keep` has at least `in.row_capacity()` elements.
template <AnyStream S, class T>
void mask_rows(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
               std::type_identity_t<RaggedView<const T>> in,
               std::type_identity_t<DeviceSpan<const std::uint8_t, BackendOf<S>>> keep,
               RaggedWorkspace<BackendOf<S>>& workspace);

/// The rows that have values.
template <AnyStream S, class T>
void remove_empty(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                  std::type_identity_t<RaggedView<const T>> in, RaggedWorkspace<BackendOf<S>>& workspace);

/// Each row `times` times in succession. Throws `Error` below 0.
template <AnyStream S, class T>
void repeat(const S& stream, RaggedBatch<T, BackendOf<S>>& out, std::type_identity_t<RaggedView<const T>> in,
            std::int64_t times, RaggedWorkspace<BackendOf<S>>& workspace);

/// Row r `times[r]` times in succession; below 0 counts as 0. `times` has at least `in.row_capacity()`
/// elements.
template <AnyStream S, class T>
void repeat_each(const S& stream, RaggedBatch<T, BackendOf<S>>& out,
                 std::type_identity_t<RaggedView<const T>> in,
                 std::type_identity_t<DeviceSpan<const std::int64_t, BackendOf<S>>> times,
                 RaggedWorkspace<BackendOf<S>>& workspace);

} // namespace sluice::ragged

#include <sluice/ragged/detail/select.inl>
