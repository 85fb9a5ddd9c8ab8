/// \file
/// Copies between places, and fills. A pair of places that a device cannot copy between does not compile.
#pragma once

#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/detail/placed_span.hpp>
#include <sluice/memory/span.hpp>

namespace sluice {

/// What the elements of a buffer, a span or a contiguous range are, without const.
template <class Memory>
using MemoryElement = detail::ElementOf<Memory>;

/// Copies all of `from` to `to` in the order of `stream`, without waiting: between device memory, pinned memory, or one
/// and the other, of the stream's backend. Buffers and spans both serve. Both sides must stay alive, and pinned memory
/// unchanged, until the stream has got there. From pinned to pinned memory a thread of the host's copies, as a callable
/// given to `BasicStreamRef::enqueue`.
///
/// Throws `Error` when the lengths differ, one side is a null pointer with a length or longer than any memory, both overlap and are
/// not the same, or the call fails.
/// @{
template <Backend B, class To, class From>
void copy(BasicStreamRef<B> stream, To&& to, const From& from);
template <Backend B, class To, class From>
void copy(const BasicStream<B>& stream, To&& to, const From& from) {
    copy(stream.ref(), to, from);
}
/// @}

/// Copies between device memory and ordinary host memory (anything that a `std::span` can be made of), in the
/// order of `stream`, and waits until it is done. Throws `Error` as `copy` does, and for a fault of the stream.
/// @{
template <Backend B, class To, class From>
void copy_and_wait(BasicStreamRef<B> stream, To&& to, const From& from);
template <Backend B, class To, class From>
void copy_and_wait(const BasicStream<B>& stream, To&& to, const From& from) {
    copy_and_wait(stream.ref(), to, from);
}
/// @}

/// Sets every byte of `to`, device memory of the stream's backend, to `value` in the order of `stream`, without
/// waiting. `to` must stay alive until the stream has got there. Throws `Error` when `to` is a null pointer with a length or longer
/// than any memory, or the call fails.
/// @{
template <Backend B, class To>
void fill_bytes(BasicStreamRef<B> stream, To&& to, unsigned char value);
template <Backend B, class To>
void fill_bytes(const BasicStream<B>& stream, To&& to, unsigned char value) {
    fill_bytes(stream.ref(), to, value);
}
/// @}

/// Sets every element of `to`, device memory of the stream's backend, to `value` in the order of `stream`, without
/// waiting. Elements are trivially copyable and of 1, 2 or 4 bytes. `to` must stay alive until the stream has got there.
/// Throws `Error` when `to` is a null pointer with a length or longer than any memory, does not begin at a multiple of its elements'
/// size, is a buffer of another device than the stream's, or the call fails.
/// @{
template <Backend B, class To>
void fill(BasicStreamRef<B> stream, To&& to, const MemoryElement<To>& value);
template <Backend B, class To>
void fill(const BasicStream<B>& stream, To&& to, const MemoryElement<To>& value) {
    fill(stream.ref(), to, value);
}
/// @}

/// Do not compile: there is no stream.
/// @{
template <detail::OfBackend To, class From>
auto copy(To&&, const From&) {
    static_assert(sizeof(To) == 0, "sluice::copy: a stream comes first, as in copy(stream, to, from)");
}
template <class To, class From>
requires(detail::OfBackend<To> || detail::OfBackend<From>) auto copy_and_wait(To&&, const From&) {
    static_assert(sizeof(To) == 0,
                  "sluice::copy_and_wait: a stream comes first, as in copy_and_wait(stream, to, from)");
}
template <detail::OfBackend To>
auto fill(To&&, const MemoryElement<To>&) {
    static_assert(sizeof(To) == 0, "sluice::fill: a stream comes first, as in fill(stream, to, value)");
}
template <detail::OfBackend To>
auto fill_bytes(To&&, unsigned char) {
    static_assert(sizeof(To) == 0,
                  "sluice::fill_bytes: a stream comes first, as in fill_bytes(stream, to, value)");
}
/// @}

} // namespace sluice

#include <sluice/memory/detail/copy.inl>
