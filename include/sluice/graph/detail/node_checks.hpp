// What the nodes of a builder's graph take, checked when the program is compiled or when they are added.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <sluice/backend/default.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice::detail {

template <class R>
using SpanFor = std::remove_const_t<decltype(placed_span(std::declval<std::remove_reference_t<R>&>()))>;

template <class To, class From>
struct CopyTraits {
    using ToSpan = SpanFor<To>;
    using FromSpan = SpanFor<const From>;
    using Element = std::remove_const_t<typename ToSpan::element_type>;
    static constexpr CopyKind kind = kind_between(memory_kind_of<ToSpan>, memory_kind_of<FromSpan>);
    static constexpr bool asynchronous =
        memory_kind_of<ToSpan> != MemoryKind::host && memory_kind_of<FromSpan> != MemoryKind::host &&
        (memory_kind_of<ToSpan> == MemoryKind::device || memory_kind_of<FromSpan> == MemoryKind::device);
};

/// What a copy node's two sides must be.
template <class B, class To, class From>
constexpr bool check_copy_node() {
    using Traits = CopyTraits<To, From>;
    using FromElement = std::remove_const_t<typename Traits::FromSpan::element_type>;
    constexpr bool writable = !std::is_const_v<typename Traits::ToSpan::element_type>;
    constexpr bool same = std::is_same_v<typename Traits::Element, FromElement>;
    constexpr bool own =
        fits_backend<typename Traits::ToSpan, B> && fits_backend<typename Traits::FromSpan, B>;
    static_assert(Traits::asynchronous,
                  "sluice: a copy node goes between device and pinned memory, or within device memory");
    static_assert(writable, "sluice: the elements that a copy node writes are const");
    static_assert(same, "sluice: both sides of a copy node must hold the same type of elements");
    static_assert(own, "sluice: the memory of a copy node belongs to another backend");
    return Traits::asynchronous && writable && same && own;
}

/// What a copy node's two sides hold.
template <class To, class From>
void check_copy_spans(const To& to, const From& from) {
    if (to.size() != from.size() || to.size() == 0) {
        throw Error("a copy node needs as many elements on both sides, and at least 1; the source holds " +
                    std::to_string(from.size()) + " and the destination " + std::to_string(to.size()));
    }
    require_sides("a copy node", to, from);
}

/// What a fill node fills: a span that is not empty.
template <class B, class To>
auto fill_node_span(To&& to) {
    const auto span = placed_span(to);
    using Span = std::remove_const_t<decltype(span)>;
    static_assert(memory_kind_of<Span> == MemoryKind::device && fits_backend<Span, B>,
                  "sluice: a fill node fills device memory of the graph's backend");
    static_assert(!std::is_const_v<typename Span::element_type>,
                  "sluice: the elements that a fill node writes are const");
    if (span.size() == 0)
        throw Error("a fill node needs at least 1 element, got none");
    require_memory("a fill node", "the memory", piece_of_span(span));
    return span;
}

/// What a node calls must be callable so.
template <class F>
constexpr bool check_node_task() {
    constexpr bool fits = std::is_invocable_v<F&>;
    static_assert(fits, "sluice: what a node of a graph calls is called without arguments, as task()");
    return fits;
}

/// Whether `Args` can be what a kernel with `Params` is launched with.
template <class... Params>
struct KernelSignature {
    template <class... Args>
    static constexpr bool takes() {
        constexpr bool as_many = sizeof...(Args) == sizeof...(Params);
        static_assert(as_many, "sluice: a kernel node needs as many arguments as its kernel has parameters");
        if constexpr (as_many) {
            constexpr bool fit = (std::is_convertible_v<const Args&, Params> && ...);
            static_assert(fit,
                          "sluice: an argument of a kernel node does not convert to its kernel's parameter");
            return fit;
        }
        return false;
    }
};

/// Calls `use(pointers)` with one pointer to each argument of a kernel; they hold until it returns.
template <class... Params, class Use>
void with_kernel_arguments(Use&& use, std::remove_cv_t<Params>... values) {
    void* pointers[] = {static_cast<void*>(__builtin_addressof(values))..., nullptr};
    use(pointers);
}

} // namespace sluice::detail
