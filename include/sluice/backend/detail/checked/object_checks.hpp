// What buffers, blocks, results, graphs and collectives tell the checker: the one interface between them. A pipeline has
// `PipelineChecks`, a source `SourceChecks`.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <sluice/backend/detail/checked/interface.hpp>

namespace sluice::detail {

/// Of a backend that is not checked: nothing is told.
template <class B, bool = IsChecked<B>::value>
struct ObjectChecks {
    static constexpr bool on = false; ///< Whether anything is looked for.
    /// Within it, waits and marks are the library's own: unnecessary ones are not reported.
    using LibraryScope = checked::NoScope;
    /// Within it, copies are waited for, so that ordinary memory on the host's side is the caller's alone meanwhile.
    template <bool>
    using WaitedCopyScope = checked::NoScope;

    /// The host gets at pinned memory, to read it, perhaps to change it, or both.
    SLUICE_ALWAYS_INLINE static void host_touches(const void*, std::size_t, bool /*reads*/,
                                                  bool /*may_write*/) noexcept {}
    /// The library writes pinned memory, for what messages call `what`.
    SLUICE_ALWAYS_INLINE static void host_writes(const void*, std::size_t, const char* /*what*/) noexcept {}
    /// A result is handed over: its values, and their number where it came from the device, otherwise null.
    template <class Number>
    SLUICE_ALWAYS_INLINE static void result_read(const void*, std::size_t, const Number*) noexcept {}

    /// What a node calls, as the backend takes it.
    template <class F>
    SLUICE_ALWAYS_INLINE static F&& node_call(F& task) noexcept {
        return static_cast<F&&>(task);
    }
    /// The node of a graph or an executable calls it.
    template <class Graph, class Node, class Call>
    SLUICE_ALWAYS_INLINE static void node_calls(Graph, Node, const Call&) noexcept {}
};
template <class B>
struct ObjectChecks<B, true> {
    static constexpr bool on = true;
    using LibraryScope = checked::InternalScope;
    template <bool OfOrdinaryMemory>
    using WaitedCopyScope = std::conditional_t<OfOrdinaryMemory, checked::HostSideScope, checked::NoScope>;

    static void host_touches(const void* begin, std::size_t bytes, bool reads, bool may_write) {
        checked::host_touches(begin, bytes, reads, may_write);
    }
    static void host_writes(const void* begin, std::size_t bytes, const char* what) {
        const checked::Range range{begin, bytes, true};
        checked::host_accesses(&range, 1, checked::Op::host, what);
    }
    template <class Number>
    static void result_read(const void* values, std::size_t bytes, const Number* number) {
        const checked::Range ranges[] = {{values, bytes, false}, {number, sizeof(Number), false}};
        checked::host_accesses(ranges, number != nullptr ? 2 : 1, checked::Op::result, nullptr);
    }

    template <class F>
    static auto node_call(F& task) {
        return B::call_of_node(std::move(task));
    }
    template <class Graph, class Node, class Call>
    static void node_calls(Graph graph, Node node, const Call& call) {
        B::node_calls(graph, node, call);
    }
};

} // namespace sluice::detail
