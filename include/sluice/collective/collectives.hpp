/// \file
/// Reductions, gathers and broadcasts in stream order.
#pragma once

#include <type_traits>

#include <sluice/collective/communicator.hpp>
#include <sluice/collective/reduction.hpp>
#include <sluice/memory/span.hpp>

namespace sluice {

namespace detail {

template <class T>
inline constexpr bool is_reduction = std::is_same_v<std::remove_cvref_t<T>, Reduction>;

} // namespace detail

/// \name Collectives
/// Each enqueues this rank's part on `stream`, a stream of the communicator's device, and does not wait for it. All ranks make
/// the same calls in the same order, with as many elements: see `Communicator`. Buffers and spans of device memory both
/// serve; elements are float, double, integers of 1, 4 or 8 bytes, or what `float16_format` names. Both sides stay alive, and the input unchanged, until
/// the stream has got there. They can be captured. On the Host backend, and with NCCL for a fixed number of ranks on the
/// same machine, the same input gives the same bits.
///
/// Throws `Error`: where the lengths do not fit, the sides overlap and are not in place, the stream belongs to another device, the
/// group has failed, or the call fails.
/// @{

/// `out` of every rank becomes the reduction of all ranks' `in`, element by element. `in` may be `out` itself, and overlaps it
/// in no other way.
template <Backend B, class In, class Out>
requires(!detail::is_reduction<Out>) void all_reduce(BasicStreamRef<B> stream,
                                                     const Communicator<B>& communicator, const In& in,
                                                     Out&& out, Reduction reduction = Reduction::sum);
template <Backend B, class In, class Out>
requires(!detail::is_reduction<Out>) void all_reduce(const BasicStream<B>& stream,
                                                     const Communicator<B>& communicator, const In& in,
                                                     Out&& out, Reduction reduction = Reduction::sum) {
    all_reduce(stream.ref(), communicator, in, out, reduction);
}

/// The same in place.
template <Backend B, class Memory>
void all_reduce(BasicStreamRef<B> stream, const Communicator<B>& communicator, Memory&& memory,
                Reduction reduction = Reduction::sum) {
    all_reduce(stream, communicator, memory, memory, reduction);
}
template <Backend B, class Memory>
void all_reduce(const BasicStream<B>& stream, const Communicator<B>& communicator, Memory&& memory,
                Reduction reduction = Reduction::sum) {
    all_reduce(stream.ref(), communicator, memory, memory, reduction);
}

/// `in` is a part for each rank, all equally long, one after another; `out` of rank r becomes the reduction of all ranks' part r.
/// `out` may be this rank's part of `in`, and overlaps it in no other way.
template <Backend B, class In, class Out>
void reduce_scatter(BasicStreamRef<B> stream, const Communicator<B>& communicator, const In& in, Out&& out,
                    Reduction reduction = Reduction::sum);
template <Backend B, class In, class Out>
void reduce_scatter(const BasicStream<B>& stream, const Communicator<B>& communicator, const In& in,
                    Out&& out, Reduction reduction = Reduction::sum) {
    reduce_scatter(stream.ref(), communicator, in, out, reduction);
}

/// `out` of every rank becomes all ranks' `in`, one after another. `in` may be this rank's part of `out`, and overlaps it in no
/// other way.
template <Backend B, class In, class Out>
void all_gather(BasicStreamRef<B> stream, const Communicator<B>& communicator, const In& in, Out&& out);
template <Backend B, class In, class Out>
void all_gather(const BasicStream<B>& stream, const Communicator<B>& communicator, const In& in, Out&& out) {
    all_gather(stream.ref(), communicator, in, out);
}

/// `memory` of every rank becomes that of rank `root`.
template <Backend B, class Memory>
void broadcast(BasicStreamRef<B> stream, const Communicator<B>& communicator, Memory&& memory, int root);
template <Backend B, class Memory>
void broadcast(const BasicStream<B>& stream, const Communicator<B>& communicator, Memory&& memory, int root) {
    broadcast(stream.ref(), communicator, memory, root);
}
/// @}

} // namespace sluice

#include <sluice/collective/detail/collectives.inl>
