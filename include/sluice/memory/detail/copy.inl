// Bodies of copy.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/backend/detail/same_device.hpp>

namespace sluice {

namespace detail {

constexpr CopyKind kind_between(MemoryKind to, MemoryKind from) {
    if (from == MemoryKind::device)
        return to == MemoryKind::device ? CopyKind::device_to_device : CopyKind::device_to_host;
    return to == MemoryKind::device ? CopyKind::host_to_device : CopyKind::host_to_host;
}

// What is wrong with a copy and a fill, compiled once.
[[noreturn]] void throw_other_size(std::size_t from, std::size_t to);
[[noreturn]] void throw_misaligned_fill(std::size_t element_bytes);
[[noreturn]] void throw_copy_overlap(const char* call);
#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void throw_other_size(std::size_t from, std::size_t to) {
    throw Error("copy: the source holds " + detail::counted(from, "element") + " and the destination " +
                std::to_string(to) + "; both must hold the same number");
}
SLUICE_BODY void throw_misaligned_fill(std::size_t element_bytes) {
    throw Error("fill: the memory begins at an address that is no multiple of its elements' " +
                detail::counted(element_bytes, "byte"));
}
SLUICE_BODY void throw_copy_overlap(const char* call) {
    throw_overlap(call, "the source", "the destination",
                  ", and a device may read what it has written already; copy by way of another buffer");
}
#endif

/// Throws `Error` for sides of a copy that are not there or overlap in part, which device memory and other memory cannot. There are as
/// many elements on both.
template <class ToSpan, class FromSpan>
SLUICE_ALWAYS_INLINE inline void require_sides(const char* call, const ToSpan& to, const FromSpan& from) {
    const Piece read = piece_of_span(from);
    const Piece written = piece_of_span(to);
    require_memory(call, "the source", read);
    require_memory(call, "the destination", written);
    if constexpr ((memory_kind_of<ToSpan> == MemoryKind::device) ==
                  (memory_kind_of<FromSpan> == MemoryKind::device)) {
        if (overlap_in_part(written, read)) [[unlikely]]
            throw_copy_overlap(call);
    }
}

template <class B, class ToSpan, class FromSpan>
void copy_spans(BasicStreamRef<B> stream, ToSpan to, FromSpan from) {
    using ToElement = typename ToSpan::element_type;
    using FromElement = typename FromSpan::element_type;
    static_assert(!std::is_const_v<ToElement>, "sluice::copy: the destination's elements are const; it comes "
                                               "before the source, as in copy(stream, to, from)");
    static_assert(std::is_same_v<std::remove_const_t<ToElement>, std::remove_const_t<FromElement>>,
                  "sluice::copy: source and destination must hold the same type of elements");
    static_assert(std::is_trivially_copyable_v<ToElement>,
                  "sluice::copy: elements must be trivially copyable");
    static_assert(fits_backend<ToSpan, B> && fits_backend<FromSpan, B>,
                  "sluice::copy: the memory belongs to another backend than the stream");
    if (to.size() != from.size()) [[unlikely]]
        throw_other_size(from.size(), to.size());
    if (from.size() == 0)
        return;
    require_sides("copy", to, from);
    if constexpr (!std::is_const_v<ToElement>) { // refused above; a second error would only hide the first
        B::copy(to.data(), from.data(), from.size() * sizeof(ToElement),
                kind_between(memory_kind_of<ToSpan>, memory_kind_of<FromSpan>), stream.get());
    }
}

/// A buffer knows whose memory it is, a span does not.
template <Backend B, class To>
void require_memory_of([[maybe_unused]] BasicStreamRef<B> stream, [[maybe_unused]] const char* call,
                       [[maybe_unused]] const To& to) {
    if constexpr (requires { to.device(); })
        require_same_device(stream, call, "the memory", to.device());
}

} // namespace detail

template <Backend B, class To, class From>
void copy(BasicStreamRef<B> stream, To&& to, const From& from) {
    const auto to_span = detail::placed_span(to);
    const auto from_span = detail::placed_span(from);
    constexpr detail::MemoryKind to_kind = detail::memory_kind_of<std::remove_const_t<decltype(to_span)>>;
    constexpr detail::MemoryKind from_kind = detail::memory_kind_of<std::remove_const_t<decltype(from_span)>>;
    constexpr bool spans = detail::has_span<To> && detail::has_span<const From>;
    static_assert(spans, "sluice::copy: copies between buffers and spans, as in copy(stream, to, from); of a "
                         "RaggedBatch give its block() or values(), or use RaggedPacker::copy_to");
    static_assert(!spans || (to_kind != detail::MemoryKind::host && from_kind != detail::MemoryKind::host),
                  "sluice::copy: ordinary host memory cannot be copied asynchronously; use a PinnedBuffer, a "
                  "PinnedSpan of page-locked memory, or copy_and_wait");
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
    constexpr bool spans = detail::has_span<To> && detail::has_span<const From>;
    static_assert(spans, "sluice::copy_and_wait: copies between buffers, spans and contiguous ranges, as in "
                         "copy_and_wait(stream, to, from); of a RaggedBatch give its block() or values(), or "
                         "use to_lists_and_wait");
    static_assert(!spans || to_kind == detail::MemoryKind::device || from_kind == detail::MemoryKind::device,
                  "sluice::copy_and_wait: one side must be device memory");
    if constexpr (spans) {
        {
            // Of ordinary memory, that is.
            constexpr bool from_host =
                to_kind == detail::MemoryKind::host || from_kind == detail::MemoryKind::host;
            [[maybe_unused]] const typename detail::ObjectChecks<B>::template WaitedCopyScope<from_host>
                scope;
            detail::copy_spans(stream, to_span, from_span);
        }
        stream.sync();
    }
}

template <Backend B, class To>
void fill_bytes(BasicStreamRef<B> stream, To&& to, unsigned char value) {
    const auto to_span = detail::placed_span(to);
    using ToSpan = std::remove_const_t<decltype(to_span)>;
    constexpr bool on_device = detail::memory_kind_of<ToSpan> == detail::MemoryKind::device;
    constexpr bool writable = !std::is_const_v<typename ToSpan::element_type>;
    static_assert(on_device, "sluice::fill_bytes: fills device memory only, in a buffer or a span; of a "
                             "RaggedBatch give its values() or block()");
    static_assert(detail::fits_backend<ToSpan, B>,
                  "sluice::fill_bytes: the memory belongs to another backend than the stream");
    static_assert(writable, "sluice::fill_bytes: the destination's elements are const");
    if constexpr (on_device && writable) {
        if (to_span.empty())
            return;
        detail::require_memory("fill_bytes", "the memory", detail::piece_of_span(to_span));
        detail::require_memory_of(stream, "fill_bytes", to);
        B::fill_bytes(to_span.data(), value, to_span.bytes(), stream.get());
    }
}

template <Backend B, class To>
void fill(BasicStreamRef<B> stream, To&& to, const MemoryElement<To>& value) {
    const auto to_span = detail::placed_span(to);
    using ToSpan = std::remove_const_t<decltype(to_span)>;
    using Element = MemoryElement<To>;
    constexpr bool on_device = detail::memory_kind_of<ToSpan> == detail::MemoryKind::device;
    constexpr bool writable = !std::is_const_v<typename ToSpan::element_type>;
    constexpr bool plain = std::is_trivially_copyable_v<Element>;
    constexpr bool fits = sizeof(Element) == 1 || sizeof(Element) == 2 || sizeof(Element) == 4;
    static_assert(on_device, "sluice::fill: fills device memory only, in a buffer or a span; of a "
                             "RaggedBatch give its values() or block()");
    static_assert(detail::fits_backend<ToSpan, B>,
                  "sluice::fill: the memory belongs to another backend than the stream");
    static_assert(writable, "sluice::fill: the destination's elements are const");
    static_assert(plain, "sluice::fill: elements must be trivially copyable");
    static_assert(fits, "sluice::fill: elements must be of 1, 2 or 4 bytes; for others copy from pinned "
                        "memory, use fill_bytes, or write them in a kernel");
    static_assert(FillBackend<B>, "sluice::fill: the stream's backend has no fill_elements; see FillBackend");
    if constexpr (on_device && writable && plain && fits && FillBackend<B>) {
        if (to_span.empty())
            return;
        detail::require_memory("fill", "the memory", detail::piece_of_span(to_span));
        detail::require_memory_of(stream, "fill", to);
        if (reinterpret_cast<std::uintptr_t>(to_span.data()) % sizeof(Element) != 0) {
            detail::throw_misaligned_fill(sizeof(Element));
        }
        std::conditional_t<sizeof(Element) == 1, std::uint8_t,
                           std::conditional_t<sizeof(Element) == 2, std::uint16_t, std::uint32_t>>
            pattern = 0;
        std::memcpy(&pattern, &value, sizeof(pattern));
        B::fill_elements(to_span.data(), pattern, sizeof(Element), to_span.size(), stream.get());
    }
}

} // namespace sluice
