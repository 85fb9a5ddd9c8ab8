/// \file
/// What runs a graph that was built by hand, with parameters that change between launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/graph.hpp>
#include <sluice/graph/graph_nodes.hpp>

namespace sluice {

/// Runs what a builder has built. Made by `BasicGraphBuilder::instantiate`, and does not need the builder. A change of
/// a parameter holds for the launches that follow; those in flight keep what they had.
///
/// Move-only; a moved-from one may be assigned to, and throws `Error` otherwise. Not synchronised. Destroying it waits for launches
/// only where it owns tasks that these call. No other function waits. All throw `Error`, and `set` for a node that was
/// not in the builder when this was made, of a body, or that the driver cannot change so.
template <GraphBackend B>
class BasicBuiltGraphExec {
public:
    /// Enqueues the graph's work on `stream`, after earlier launches of the same executable, whatever their streams.
    void launch(BasicStreamRef<B> stream);

    /// Hands the executable to the device ahead of its first launch, in the order of `stream`.
    void upload(BasicStreamRef<B> stream) const { executable_.upload(stream); }

    /// The native executable, which stays this object's.
    typename B::NativeGraphExec get() const noexcept { return executable_.get(); }

    /// Copies between other places, of the same type of elements and the same way. Both hold the same number of elements,
    /// at least one.
    template <class T, CopyKind kind, class To, class From>
    void set(const CopyNode<B, T, kind>& node, To&& to, const From& from);

    /// Sets every byte of `to`, device memory, to `value`.
    template <class To>
    void set(const FillNode<B>& node, To&& to, unsigned char value);

    /// Calls `task()`, which is kept as long as a launch may call it.
    template <class F>
    void set(const HostNode<B>& node, F task);

    /// Calls `function(data)`, of which nothing is kept.
    void set(const HostNode<B>& node, void (*function)(void*), void* data);

    /// Runs another graph, with the same nodes and order as the one it had.
    void set(const ChildNode<B>& node, const BasicGraph<B>& graph);

    /// Launches the kernel with other arguments, and with the grid that the node was added with.
    template <class... Params, class... Args>
    void set(const KernelNode<B, Params...>& node, const Args&... args) requires KernelGraphBackend<B> {
        set_launch(node, node.dims_, args...);
    }

    /// Launches the kernel with another grid and other arguments.
    template <class... Params, class... Args>
    void set_launch(const KernelNode<B, Params...>& node, const KernelDims& dims,
                    const Args&... args) requires KernelGraphBackend<B>;

private:
    friend class BasicGraphBuilder<B>;

    struct Tasks; // what launches in flight may still call

    BasicBuiltGraphExec(detail::Shared<const BasicGraph<B>> graph, std::uint64_t builder, std::size_t count)
        : graph_(std::move(graph)), executable_(*graph_), builder_(builder), count_(count) {}
    void check(const BasicNode<B>& node) const;
    void set_task(const HostNode<B>& node, void (*function)(void*), void* data, detail::Shared<void> task);

    detail::Shared<const BasicGraph<B>> graph_; // nodes are named by those of the graph
    BasicGraphExec<B> executable_;
    detail::Owned<Tasks> tasks_; // none without tasks of its own
    std::uint64_t builder_;
    std::size_t count_;
};

} // namespace sluice

#include <sluice/graph/detail/built_graph_exec.inl>
