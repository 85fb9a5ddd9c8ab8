// Bodies of collectives.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include <sluice/backend/detail/memory_pieces.hpp>
#include <sluice/backend/detail/same_device.hpp>
#include <sluice/memory/accesses.hpp>
#include <sluice/memory/detail/placed_span.hpp>

namespace sluice {

namespace detail {

/// The span of a side of a collective, which must be device memory of the stream's backend.
template <Backend B, class Memory>
auto collective_span(Memory& memory) {
    const auto span = placed_span(memory);
    using Span = std::remove_const_t<decltype(span)>;
    static_assert(memory_kind_of<Span> == MemoryKind::device && fits_backend<Span, B>,
                  "sluice: collectives take device memory of the stream's backend, in a buffer or a span");
    return span;
}

inline void require_reduction(Reduction reduction) {
    require_named("the Reduction", reduction, Reduction::maximum, "sum, average, minimum or maximum");
}

inline void require_lengths(CollectiveKind kind, std::size_t in, std::size_t out, std::size_t expected) {
    if (out != expected) {
        throw Error(std::string(name_of(kind)) + ": the input holds " + detail::counted(in, "element") +
                    " and the output " + std::to_string(out) + "; an output of " + std::to_string(expected) +
                    " was expected");
    }
}

inline void require_average(const char* who, Reduction reduction, CollectiveElement element) {
    if (reduction == Reduction::average && !is_real(element)) {
        throw Error(std::string(who) + ": the average of " + name_of(element) +
                    " elements was asked for; expected floating-point ones");
    }
}

/// Throws `Error` where one side of a collective lies in the other, but as rank `rank`'s part of it: other ranks read what this one
/// would have written.
inline void require_sides_apart(CollectiveKind kind, int rank, std::span<const std::byte> in,
                                std::span<const std::byte> out) {
    if (!overlap({in.data(), in.size()}, {out.data(), out.size()}))
        return;
    const auto in_begin = reinterpret_cast<std::uintptr_t>(in.data());
    const auto out_begin = reinterpret_cast<std::uintptr_t>(out.data());
    const auto before = static_cast<std::uintptr_t>(rank);
    const bool in_place = in.size() > out.size()   ? out_begin == in_begin + before * out.size()
                          : in.size() < out.size() ? in_begin == out_begin + before * in.size()
                                                   : in_begin == out_begin;
    if (!in_place) {
        throw_overlap(name_of(kind), "the input", "the output",
                      "; expected them apart, or in place: the same memory, or the shorter one as the part "
                      "of rank " +
                          std::to_string(rank) + " in the longer");
    }
}

template <Backend B, class In, class Out>
void enqueue_collective(BasicStreamRef<B> stream, const Communicator<B>& communicator, CollectiveKind kind,
                        In in, Out out, std::size_t count, Reduction reduction, int root) {
    using T = typename Out::element_type;
    static_assert(!std::is_const_v<T>, "sluice: a collective's output is const; it comes after the input");
    static_assert(std::is_same_v<typename In::value_type, T>,
                  "sluice: a collective's input and output must hold the same type of elements");
    RankEnd<B>& end = communicator.end();
    require_reduction(reduction);
    require_average(name_of(kind), reduction, collective_element<T>());
    require_same_device(stream, name_of(kind), "the communicator's rank", end.device());
    require_memory(name_of(kind), "the input", piece_of_span(in));
    require_memory(name_of(kind), "the output", piece_of_span(out));
    require_sides_apart(kind, end.rank(), {reinterpret_cast<const std::byte*>(in.data()), in.bytes()},
                        {reinterpret_cast<const std::byte*>(out.data()), out.bytes()});
    end.checks().enqueued(stream, name_of(kind), in, out);
    if constexpr (!std::is_const_v<T>) {
        end.enqueue(stream, {.kind = kind,
                             .element = collective_element<T>(),
                             .reduction = reduction,
                             .root = root,
                             .in = in.data(),
                             .out = out.data(),
                             .count = count});
    }
}

} // namespace detail

template <Backend B, class In, class Out>
requires(!detail::is_reduction<Out>) void all_reduce(BasicStreamRef<B> stream,
                                                     const Communicator<B>& communicator, const In& in,
                                                     Out&& out, Reduction reduction) {
    const auto from = detail::collective_span<B>(in);
    const auto to = detail::collective_span<B>(out);
    detail::require_lengths(detail::CollectiveKind::all_reduce, from.size(), to.size(), from.size());
    detail::enqueue_collective(stream, communicator, detail::CollectiveKind::all_reduce, from, to, to.size(),
                               reduction, 0);
}

template <Backend B, class In, class Out>
void reduce_scatter(BasicStreamRef<B> stream, const Communicator<B>& communicator, const In& in, Out&& out,
                    Reduction reduction) {
    const auto from = detail::collective_span<B>(in);
    const auto to = detail::collective_span<B>(out);
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    if (from.size() % ranks != 0) {
        throw Error("reduce_scatter: the input holds " + detail::counted(from.size(), "element") +
                    ", which are not equal parts for " + detail::counted(ranks, "rank"));
    }
    detail::require_lengths(detail::CollectiveKind::reduce_scatter, from.size(), to.size(),
                            from.size() / ranks);
    detail::enqueue_collective(stream, communicator, detail::CollectiveKind::reduce_scatter, from, to,
                               to.size(), reduction, 0);
}

template <Backend B, class In, class Out>
void all_gather(BasicStreamRef<B> stream, const Communicator<B>& communicator, const In& in, Out&& out) {
    const auto from = detail::collective_span<B>(in);
    const auto to = detail::collective_span<B>(out);
    const auto ranks = static_cast<std::size_t>(communicator.ranks());
    constexpr std::size_t most = ~std::size_t{0}; // more than any output holds
    detail::require_lengths(detail::CollectiveKind::all_gather, from.size(), to.size(),
                            from.size() > most / ranks ? most : from.size() * ranks);
    detail::enqueue_collective(stream, communicator, detail::CollectiveKind::all_gather, from, to,
                               from.size(), Reduction::sum, 0);
}

template <Backend B, class Memory>
void broadcast(BasicStreamRef<B> stream, const Communicator<B>& communicator, Memory&& memory, int root) {
    if (root < 0 || root >= communicator.ranks()) {
        throw Error("broadcast: the root is to be rank " + std::to_string(root) + " of " +
                    std::to_string(communicator.ranks()) + "; expected one of them, from 0");
    }
    const auto span = detail::collective_span<B>(memory);
    detail::enqueue_collective(stream, communicator, detail::CollectiveKind::broadcast, span, span,
                               span.size(), Reduction::sum, root);
}

} // namespace sluice
