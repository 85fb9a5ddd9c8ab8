/// \file
/// Graphs made node by node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/graph/built_graph_exec.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/graph.hpp>
#include <sluice/graph/graph_nodes.hpp>

namespace sluice {

/// Builds a graph from typed nodes. A node runs after those named in its `after`, and concurrently with all
/// others. A kernel behind `node.early()` of another may begin while that one ends (programmatic dependent launch): both are kernels,
/// and CUDA is 12.3 or later, or `Error` is thrown; where the code for the current device cannot wait, as before compute capability
/// 9.0, and on the Host backend, the edge is one as any other.
///
/// \code
/// sluice::GraphBuilder builder;
/// auto in = builder.copy(input, pinned_input);
/// auto scale = builder.kernel({.grid = blocks, .block = 128}, scale_kernel, {in}, input.data(), 2.0f);
/// builder.copy(pinned_output, input, {scale});
/// auto executable = builder.instantiate();
/// executable.launch(stream);
/// executable.set(scale, input.data(), 3.0f); // for the launches that follow
/// \endcode
///
/// Branches and loops are nodes as well. What a node decides with the setter holds for that launch:
///
/// \code
/// sluice::Condition again;
/// builder.while_nonzero(again, [&](sluice::GraphBuilder& body) {
///     auto step = body.kernel({.grid = blocks, .block = 128}, iterate, {}, x.data(), residual.data());
///     body.kernel({}, decide, {step}, body.setter(again), residual.data()); // setter.set(*residual > 1e-6f)
/// });
/// \endcode
///
/// Nothing runs, and nothing is allocated on the device, before the executable is launched. Memory that nodes name must
/// outlive the executables. Build the graph with the device current on which it is to run.
///
/// Move-only; a moved-from builder may only be assigned to or destroyed. Not synchronised. No function waits. All throw
/// `Error`; for a node of another builder too.
template <GraphBackend B>
class BasicGraphBuilder {
public:
    /// Nodes of any types, in any order.
    using Nodes = std::vector<BasicNode<B>>;

    /// An empty graph.
    BasicGraphBuilder();

    BasicGraphBuilder(BasicGraphBuilder&& other) noexcept;            ///< Takes the graph over.
    BasicGraphBuilder& operator=(BasicGraphBuilder&& other) noexcept; ///< Takes the graph over.

    /// Adds a node that does nothing.
    EmptyNode<B> empty(const Nodes& after = {});

    /// Copies all of `from` to `to`: buffers or spans, in device and pinned memory or both in device memory. They hold the
    /// same number of elements, at least one, of the same type, and do not overlap, unless they are the same ones.
    template <class To, class From>
    CopyNodeOf<B, To, From> copy(To&& to, const From& from, const Nodes& after = {});

    /// Sets every byte of `to`, device memory with at least one element, to `value`.
    template <class To>
    FillNode<B> fill(To&& to, unsigned char value, const Nodes& after = {});

    /// Calls `work()` on a thread of the backend's, once a launch. The callable is kept until neither the builder nor an
    /// executable made from it needs it. On CUDA it must neither throw nor call CUDA.
    template <class F>
    HostNode<B> host(F work, const Nodes& after = {});

    /// Calls `function(data)`, of which nothing is kept.
    HostNode<B> host(void (*function)(void*), void* data, const Nodes& after = {});

    /// The Host backend's kernel: `host` under another name.
    template <class F>
    HostNode<B> task(F work, const Nodes& after = {}) requires(!KernelGraphBackend<B>);

    /// Runs a copy of `graph` as it is now. What its host nodes use must outlive the executables.
    ChildNode<B> child(const BasicGraph<B>& graph, const Nodes& after = {});

    /// Launches the kernel `function(args...)`. The arguments are checked against the kernel's parameters when the program
    /// is compiled, and copied.
    template <class... Params, class... Args>
    KernelNode<B, Params...> kernel(const KernelDims& dims, void (*function)(Params...), const Nodes& after,
                                    const Args&... args) requires KernelGraphBackend<B>;

    /// What nodes of this graph decide `condition` with: the setter of the next conditional node that is added here with
    /// it, or in the body of a `while_nonzero` the loop's own. Every launch must call `set` in a node that is added before the
    /// conditional node, which comes after all nodes added in between that may hold the setter: host nodes, child graphs, and
    /// kernels with an argument of a class. Throws `Error` as `BasicCondition::setter` does.
    ConditionSetter setter(BasicCondition<B>& condition);

    /// Runs what `body(builder)` adds if the condition is not 0. These functions build the bodies before they return, with
    /// builders that are gone then; nodes of a body come after all that the conditional node comes after, name nodes of
    /// the same body alone, and keep their parameters. On CUDA bodies hold no host nodes, and the version must be 12.4,
    /// with several bodies 12.8. The condition must outlive the executables. Throws `Error` also where `condition` has no
    /// setter given out here since it was last used, or no node that may hold it, and what a body throws, after which the
    /// builder can only be assigned to or destroyed.
    template <class Body>
    ConditionNode<B> if_nonzero(BasicCondition<B>& condition, Body&& body, const Nodes& after = {});

    /// Runs what `then(builder)` adds if the condition is not 0, and what `otherwise(builder)` adds if it is.
    template <class Then, class Otherwise>
    ConditionNode<B> if_else(BasicCondition<B>& condition, Then&& then, Otherwise&& otherwise,
                             const Nodes& after = {});

    /// Runs the body whose place the condition is, counted from 0, and none if there is no such body.
    template <class... Bodies>
    ConditionNode<B> select(BasicCondition<B>& condition, const Nodes& after, Bodies&&... bodies);

    /// Runs what `body(builder)` adds as long as the condition is not 0. With a setter given out before, it looks first;
    /// with none, the body runs once before the first look, which a loop within a body cannot, and asks for the setter. Each
    /// run of the body must call `set`, or the loop goes on.
    template <class Body>
    ConditionNode<B> while_nonzero(BasicCondition<B>& condition, Body&& body, const Nodes& after = {});

    /// Makes `node` wait for `on` as well, which must have been added before it, so that there can be no cycle.
    void depends(const BasicNode<B>& node, const BasicNode<B>& on);

    /// An executable of the nodes added so far. Throws `Error` when there are none, and in a body.
    BasicBuiltGraphExec<B> instantiate() const;

    /// The graph itself: to count its nodes, draw it, or make it a child.
    const BasicGraph<B>& graph() const {
        check_usable();
        return *graph_.get();
    }

private:
    struct BodyTag {};
    // Stands for the index of a node in a body, whose task is only kept.
    static constexpr std::size_t no_node = static_cast<std::size_t>(-1);
    // Of a body that belongs to a conditional node in `around`.
    BasicGraphBuilder(BodyTag, typename B::NativeGraph body, detail::Shared<BasicGraph<B>> around);

    // `early`: gets for each node whether it lets a kernel begin early; null for a node that is no kernel.
    std::vector<typename B::NativeNode> natives(const Nodes& nodes,
                                                detail::List<bool>* early = nullptr) const;
    void check(const BasicNode<B>& node) const;
    void check_usable() const;
    void add_deciders(BasicCondition<B>& condition, const std::string& place,
                      std::vector<typename B::NativeNode>& before);
    // To be called before a node is made that may hold a setter, so that nothing throws once it is there.
    void reserve_decider() { deciders_.reserve(deciders_.size() + 1); }
    template <class... Bodies>
    ConditionNode<B> conditional(const char* caller, BasicCondition<B>& condition, ConditionKind kind,
                                 const Nodes& after, Bodies&... bodies);
    template <class F>
    void build_body(typename B::NativeGraph graph, F& body);
    template <class Node>
    Node made(typename B::NativeNode native) noexcept {
        return Node{native, id_, count_++};
    }

    detail::Shared<BasicGraph<B>> graph_; // shared with executables, which name its nodes
    detail::List<std::pair<std::size_t, detail::Shared<void>>> tasks_; // by the nodes' indices
    // Conditions' words, with the number of nodes when their setter was given out; nodes that may hold setters, with theirs.
    detail::List<std::pair<const unsigned*, std::size_t>> setters_;
    detail::List<std::pair<std::size_t, typename B::NativeNode>> deciders_;
    std::uint64_t id_;
    std::size_t count_ = 0;
    bool is_body_ = false;
    bool incomplete_ = false; // the building of a body has thrown
};

} // namespace sluice

#include <sluice/graph/detail/graph_builder.inl>
#include <sluice/graph/detail/graph_builder_conditions.inl>
