/// \file
/// Copies between places. A pair of places that a device cannot copy between does not compile.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <sluice/memory/buffer.hpp>

namespace sluice {

/// Copies all of `from` to `to` in the order of `stream`, without waiting: from pinned to device memory, from
/// device to pinned, or from device to device, of the stream's backend. Buffers and spans both serve. Both
/// sides must stay alive, and pinned memory unchanged, until the stream has got there.
///
/// Throws `Error` when the lengths differ, or the call fails.
template <Backend B, class To, class From>
void copy(BasicStreamRef<B> stream, To&& to, const From& from);

/// Copies between device memory and ordinary host memory (anything that a `std::span` can be made of), in the
/// order of `stream`, and waits until it is done. Throws `Error` when the lengths differ, or for a fault of
/// the stream.
template <Backend B, class To, class From>
void copy_and_wait(BasicStreamRef<B> stream, To&& to, const From& from);

/// Sets every byte of `to`, device memory of the stream's backend, to `value` in the order of `stream`, without
/// waiting. `to` must stay alive until the stream has got there. Throws `Error` when the call fails.
template <Backend B, class To>
void fill_bytes(BasicStreamRef<B> stream, To&& to, unsigned char value);

// ---------------------------------------------------------------------------------------------------------------

namespace detail {

enum class MemoryKind { device, pinned, host };

/// The span of anything that has a place: a sluice buffer or span as it is, other contiguous ranges as host
/// memory.
template <class R>
constexpr auto placed_span(R& range) {
    if constexpr (requires { range.span(); }) {
        return range.span();
    } else if constexpr (requires { typename R::backend; }) {
        return range;
    } else {
        return std::span(range);
    }
}

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

/// Whether memory of `Span` is the backend's own, or no backend's at all.
template <class Span, class B>
inline constexpr bool fits_backend =
    std::is_same_v<typename MemoryKindOf<Span>::backend, B> || memory_kind_of<Span> == MemoryKind::host;

constexpr CopyKind kind_between(MemoryKind to, MemoryKind from) {
    return from != MemoryKind::device
               ? CopyKind::host_to_device
               : (to == MemoryKind::device ? CopyKind::device_to_device : CopyKind::device_to_host);
}

template <class B, class ToSpan, class FromSpan>
void copy_spans(BasicStreamRef<B> stream, ToSpan to, FromSpan from) {
    using ToElement = typename ToSpan::element_type;
    using FromElement = typename FromSpan::element_type;
    static_assert(!std::is_const_v<ToElement>, "sluice::copy: the destination's elements are const");
    static_assert(std::is_same_v<std::remove_const_t<ToElement>, std::remove_const_t<FromElement>>,
                  "sluice::copy: source and destination must hold the same type of elements");
    static_assert(std::is_trivially_copyable_v<ToElement>,
                  "sluice::copy: elements must be trivially copyable");
    static_assert(fits_backend<ToSpan, B> && fits_backend<FromSpan, B>,
                  "sluice::copy: the memory belongs to another backend than the stream");
    if (to.size() != from.size()) {
        throw Error("copy: the source holds " + std::to_string(from.size()) +
                    " elements and the destination " + std::to_string(to.size()) +
                    "; both must hold the same number");
    }
    if (from.size() == 0)
        return;
    if constexpr (!std::is_const_v<ToElement>) { // refused above; a second error would only hide the first
        B::copy(to.data(), from.data(), from.size() * sizeof(ToElement),
                kind_between(memory_kind_of<ToSpan>, memory_kind_of<FromSpan>), stream.get());
    }
}

} // namespace detail

template <Backend B, class To, class From>
void copy(BasicStreamRef<B> stream, To&& to, const From& from) {
    const auto to_span = detail::placed_span(to);
    const auto from_span = detail::placed_span(from);
    constexpr detail::MemoryKind to_kind = detail::memory_kind_of<std::remove_const_t<decltype(to_span)>>;
    constexpr detail::MemoryKind from_kind = detail::memory_kind_of<std::remove_const_t<decltype(from_span)>>;
    static_assert(to_kind != detail::MemoryKind::host && from_kind != detail::MemoryKind::host,
                  "sluice::copy: ordinary host memory cannot be copied asynchronously; use a PinnedBuffer, "
                  "a PinnedSpan of page-locked memory, or copy_and_wait");
    static_assert(to_kind == detail::MemoryKind::device || from_kind == detail::MemoryKind::device,
                  "sluice::copy: one side must be device memory");
    if constexpr (to_kind != detail::MemoryKind::host && from_kind != detail::MemoryKind::host) {
        detail::copy_spans(stream, to_span, from_span);
    }
}

template <Backend B, class To, class From>
void copy_and_wait(BasicStreamRef<B> stream, To&& to, const From& from) {
    const auto to_span = detail::placed_span(to);
    const auto from_span = detail::placed_span(from);
    constexpr detail::MemoryKind to_kind = detail::memory_kind_of<std::remove_const_t<decltype(to_span)>>;
    constexpr detail::MemoryKind from_kind = detail::memory_kind_of<std::remove_const_t<decltype(from_span)>>;
    static_assert(to_kind == detail::MemoryKind::device || from_kind == detail::MemoryKind::device,
                  "sluice::copy_and_wait: one side must be device memory");
    detail::copy_spans(stream, to_span, from_span);
    stream.sync();
}

template <Backend B, class To>
void fill_bytes(BasicStreamRef<B> stream, To&& to, unsigned char value) {
    const auto to_span = detail::placed_span(to);
    using ToSpan = std::remove_const_t<decltype(to_span)>;
    static_assert(detail::memory_kind_of<ToSpan> == detail::MemoryKind::device,
                  "sluice::fill_bytes: fills device memory only");
    static_assert(detail::fits_backend<ToSpan, B>,
                  "sluice::fill_bytes: the memory belongs to another backend than the stream");
    static_assert(!std::is_const_v<typename ToSpan::element_type>,
                  "sluice::fill_bytes: the destination's elements are const");
    if (to_span.empty())
        return;
    B::fill_bytes(to_span.data(), value, to_span.bytes(), stream.get());
}

/// The same for streams that are owned.
template <Backend B, class To, class From>
void copy(const BasicStream<B>& stream, To&& to, const From& from) {
    copy(stream.ref(), to, from);
}
template <Backend B, class To, class From>
void copy_and_wait(const BasicStream<B>& stream, To&& to, const From& from) {
    copy_and_wait(stream.ref(), to, from);
}
template <Backend B, class To>
void fill_bytes(const BasicStream<B>& stream, To&& to, unsigned char value) {
    fill_bytes(stream.ref(), to, value);
}

} // namespace sluice
