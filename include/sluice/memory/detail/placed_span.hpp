// The span of whatever holds elements, and where those are.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <sluice/memory/span.hpp>

namespace sluice::detail {

enum class MemoryKind { device, pinned, host };

template <class Span>
struct MemoryKindOf {
    static constexpr MemoryKind value = MemoryKind::host;
    using backend = void;
};
template <class T, class B>
struct MemoryKindOf<DeviceSpan<T, B>> {
    static constexpr MemoryKind value = MemoryKind::device;
    using backend = B;
};
template <class T, class B>
struct MemoryKindOf<PinnedSpan<T, B>> {
    static constexpr MemoryKind value = MemoryKind::pinned;
    using backend = B;
};

template <class Span>
inline constexpr MemoryKind memory_kind_of = MemoryKindOf<Span>::value;

/// Buffers and spans, and no streams.
template <class Memory>
concept OfBackend = requires {
    typename std::remove_cvref_t<Memory>::backend;
    typename std::remove_cvref_t<Memory>::value_type;
};

/// Whether memory of `Span` is the backend's own, or no backend's at all.
template <class Span, class B>
inline constexpr bool fits_backend =
    std::is_same_v<typename MemoryKindOf<Span>::backend, B> || memory_kind_of<Span> == MemoryKind::host;

/// The span of what has none, such as a `RaggedBatch`, so that the caller can refuse it with a sentence.
struct NoSpan {
    struct element_type {
        template <class T>
        constexpr element_type(const T&) noexcept {}
    };
    constexpr std::size_t size() const noexcept { return 0; }
    constexpr const element_type* data() const noexcept { return nullptr; }
};

/// The span of anything that has a place: a sluice buffer or span as it is, other contiguous ranges as host memory.
template <class R>
constexpr auto placed_span(R& range) {
    if constexpr (requires { range.span(); }) {
        return range.span();
    } else if constexpr (memory_kind_of<std::remove_const_t<R>> != MemoryKind::host) {
        return range;
    } else if constexpr (requires { std::span(range); }) {
        return std::span(range);
    } else {
        return NoSpan{};
    }
}

/// Whether `R` is a buffer, a span or a contiguous range.
template <class R>
inline constexpr bool has_span =
    !std::is_same_v<NoSpan, std::remove_const_t<decltype(placed_span(std::declval<R&>()))>>;

/// What the elements of `To` are.
template <class To>
using ElementOf = std::remove_const_t<typename decltype(placed_span(std::declval<To&>()))::element_type>;

} // namespace sluice::detail
