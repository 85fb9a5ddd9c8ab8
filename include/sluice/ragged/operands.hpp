/// \file
/// What the operations on ragged rows take: streams, rows, and memory for what is as many as rows or values.
#pragma once

#include <concepts>
#include <type_traits>

#include <sluice/backend/stream.hpp>
#include <sluice/memory/detail/placed_span.hpp>
#include <sluice/ragged/detail/operand_traits.hpp>
#include <sluice/ragged/view.hpp>

namespace sluice::ragged {

/// A stream: owned, referred to, a backend's own handle, or a `cuda::stream_ref`.
template <class S>
concept AnyStream = requires {
    typename detail::StreamBackend<S>::type;
};

/// The backend of a stream: what an operation's other arguments must belong to.
template <AnyStream S>
using BackendOf = typename detail::StreamBackend<S>::type;

/// Rows: a `RaggedView`, or a `RaggedBatch`, which has one.
template <class R>
concept RaggedInput = detail::is_view<std::remove_cvref_t<R>> || requires(const R& batch) {
    requires detail::is_view<decltype(batch.view())>;
};

/// Rows that work of the backend `B` may read: a batch of its memory, or a view, which does not say whose it is.
template <class R, class B>
concept RowsOn = RaggedInput<R> &&
    (detail::is_view<std::remove_cvref_t<R>> || std::same_as<typename std::remove_cvref_t<R>::backend, B>);

/// Device memory of the backend `B`: a `DeviceBuffer`, or a `DeviceSpan`.
template <class R, class B>
concept DeviceMemory = std::same_as<typename std::remove_cvref_t<R>::backend, B> && requires(R& range) {
    requires sluice::detail::memory_kind_of<std::remove_const_t<decltype(sluice::detail::placed_span(range))>>
    == sluice::detail::MemoryKind::device;
};

/// What may stand for values over the rows of an input: device memory, one element for each value, or rows that share
/// offsets and counts with it.
template <class R, class B>
concept RaggedValues = RowsOn<R, B> || DeviceMemory<R, B>;

} // namespace sluice::ragged
