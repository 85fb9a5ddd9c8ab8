/// \file
/// Graphs made node by node.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/event.hpp>
#include <sluice/backend/kernel_dims.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/control_flow.hpp>
#include <sluice/graph/graph.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

template <GraphBackend B>
class BasicGraphBuilder;
template <GraphBackend B>
class BasicBuiltGraphExec;

/// A node of a builder's graph. Copies freely; owns nothing. The types below say what its parameters are, so that
/// new ones are checked when the program is compiled.
template <GraphBackend B>
class BasicNode {
protected:
    BasicNode(typename B::NativeNode native, std::uint64_t builder, std::size_t index) noexcept
        : native_(native), builder_(builder), index_(index) {}

    typename B::NativeNode native_;
    std::uint64_t builder_;
    std::size_t index_;

    friend class BasicGraphBuilder<B>;
    friend class BasicBuiltGraphExec<B>;
};

/// Does nothing: a place to meet.
template <GraphBackend B>
class EmptyNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
    friend class BasicGraphBuilder<B>;
};
/// Copies elements of type `T`, one way.
template <GraphBackend B, class T, CopyKind kind>
class CopyNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
    friend class BasicGraphBuilder<B>;
};
/// Sets bytes of device memory.
template <GraphBackend B>
class FillNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
    friend class BasicGraphBuilder<B>;
};
/// Calls host code.
template <GraphBackend B>
class HostNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
    friend class BasicGraphBuilder<B>;
};
/// Runs a copy of another graph.
template <GraphBackend B>
class ChildNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
    friend class BasicGraphBuilder<B>;
};
/// Runs one of its bodies, or its body again and again, as a condition says.
template <GraphBackend B>
class ConditionNode : public BasicNode<B> {
    using BasicNode<B>::BasicNode;
    friend class BasicGraphBuilder<B>;
};
/// Launches a kernel whose parameters are `Params`.
template <GraphBackend B, class... Params>
class KernelNode : public BasicNode<B> {
    KernelNode(BasicNode<B> node, void (*function)(Params...), const KernelDims& dims) noexcept
        : BasicNode<B>(node), function_(function), dims_(dims) {}

    void (*function_)(Params...);
    KernelDims dims_;

    friend class BasicGraphBuilder<B>;
    friend class BasicBuiltGraphExec<B>;
};

namespace detail {

template <class To, class From>
struct CopyTraits;

/// The type of a copy's node, from what it copies between.
template <class B, class To, class From>
using CopyNodeFor = CopyNode<B, typename CopyTraits<To, From>::Element, CopyTraits<To, From>::kind>;

} // namespace detail

/// Builds a graph from typed nodes. A node runs after those named in its `after`, and beside all others.
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
/// Move-only; a moved-from builder may only be assigned to or destroyed. Not synchronised. Build it with the
/// device current on which it is to run. All functions throw `Error`; for a node of another builder too.
template <GraphBackend B>
class BasicGraphBuilder {
public:
    using Nodes = std::vector<BasicNode<B>>;

    BasicGraphBuilder();
    BasicGraphBuilder(BasicGraphBuilder&& other) noexcept
        : graph_(std::move(other.graph_)), tasks_(std::move(other.tasks_)), id_(std::exchange(other.id_, 0)),
          count_(other.count_), is_body_(other.is_body_), incomplete_(other.incomplete_) {}
    BasicGraphBuilder& operator=(BasicGraphBuilder&& other) noexcept {
        graph_ = std::move(other.graph_);
        tasks_ = std::move(other.tasks_);
        id_ = std::exchange(other.id_, 0);
        count_ = other.count_;
        is_body_ = other.is_body_;
        incomplete_ = other.incomplete_;
        return *this;
    }

    /// A node that does nothing.
    EmptyNode<B> empty(const Nodes& after = {});

    /// Copies all of `from` to `to`, which hold the same number of elements, at least one; the same places as for
    /// `sluice::copy`.
    template <class To, class From>
    detail::CopyNodeFor<B, To, From> copy(To&& to, const From& from, const Nodes& after = {});

    /// Sets every byte of `to`, device memory, to `value`.
    template <class To>
    FillNode<B> fill(To&& to, unsigned char value, const Nodes& after = {});

    /// Calls `task()` on a thread of the backend's. The task is kept until neither the builder nor an executable
    /// made from it needs it. On CUDA it must neither throw nor call CUDA.
    template <std::invocable<> F>
    HostNode<B> host(F task, const Nodes& after = {});

    /// Calls `function(data)`, of which nothing is kept.
    HostNode<B> host(void (*function)(void*), void* data, const Nodes& after = {});

    /// The Host backend's kernel: `host` under another name.
    template <std::invocable<> F>
    HostNode<B> task(F task, const Nodes& after = {}) requires(!KernelGraphBackend<B>) {
        return host(std::move(task), after);
    }

    /// Runs a copy of `graph` as it is now. What its host nodes use must outlive the executables.
    ChildNode<B> child(const BasicGraph<B>& graph, const Nodes& after = {});

    /// Launches `function(args...)`. The arguments are those of a launch, checked against the kernel's parameters
    /// when the program is compiled, and copied.
    template <class... Params, class... Args>
    KernelNode<B, Params...> kernel(const KernelDims& dims, void (*function)(Params...), const Nodes& after,
                                    const Args&... args) requires KernelGraphBackend<B>;

    /// What nodes of this graph decide `condition` with: the setter of the next conditional node that is added here with
    /// it, or in the body of a `while_nonzero` the loop's own. Every launch must call `set` in a node before the
    /// conditional node. Throws `Error` as `BasicCondition::setter` does.
    ConditionSetter setter(BasicCondition<B>& condition);

    /// Runs what `body(builder)` adds if the condition is not 0. These functions build the bodies before they return, with
    /// builders that are gone then; nodes of a body come after all that the conditional node comes after, name nodes of
    /// the same body alone, and keep their parameters. On CUDA bodies hold no host nodes, and the version must be 12.4,
    /// with several bodies 12.8. The condition must outlive the executables. Throws `Error` also where `condition` has no
    /// setter given out here since it was last used, and what a body throws, after which the builder can only be
    /// assigned to or destroyed.
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
    /// with none, the body runs once before the first look, which a loop within a body cannot. Each run of the body must
    /// call `set`, or the loop goes on.
    template <class Body>
    ConditionNode<B> while_nonzero(BasicCondition<B>& condition, Body&& body, const Nodes& after = {});

    /// Makes `node` wait for `on` as well, which must have been added before it: so no circle can come about.
    void depends(const BasicNode<B>& node, const BasicNode<B>& on);

    /// Something that runs the nodes added so far. Throws `Error` when there are none.
    BasicBuiltGraphExec<B> instantiate() const;

    /// The graph itself: to count its nodes, draw it, or make it a child.
    const BasicGraph<B>& graph() const noexcept { return *graph_; }

private:
    struct BodyTag {};
    // Stands for the index of a node in a body, whose task is only kept.
    static constexpr std::size_t no_node = static_cast<std::size_t>(-1);
    // Of a body that belongs to a conditional node in `around`.
    BasicGraphBuilder(BodyTag, typename B::NativeGraph body, std::shared_ptr<BasicGraph<B>> around);

    std::vector<typename B::NativeNode> natives(const Nodes& nodes) const;
    void check(const BasicNode<B>& node) const;
    void check_usable() const;
    template <class... Bodies>
    ConditionNode<B> conditional(const char* caller, BasicCondition<B>& condition, ConditionKind kind,
                                 const Nodes& after, Bodies&... bodies);
    template <class F>
    void build_body(typename B::NativeGraph graph, F& body);
    template <class Node>
    Node made(typename B::NativeNode native) noexcept {
        return Node{native, id_, count_++};
    }

    std::shared_ptr<BasicGraph<B>> graph_; // shared with executables, which name its nodes
    std::vector<std::pair<std::size_t, std::shared_ptr<void>>> tasks_; // by the nodes' indices
    std::uint64_t id_;
    std::size_t count_ = 0;
    bool is_body_ = false;
    bool incomplete_ = false; // the building of a body has thrown
};

/// Runs what a builder has built, with parameters that can be changed between launches. A change holds for the
/// launches that follow; those in flight keep what they had.
///
/// Does not need the builder. Move-only; a moved-from one may only be assigned to or destroyed. Not synchronised.
/// Destroying it waits for launches only where it owns tasks that these call. All functions throw `Error`, and
/// `set` for a node that was not in the builder when this was made, or that the driver cannot change so.
template <GraphBackend B>
class BasicBuiltGraphExec {
public:
    /// See BasicGraphExec.
    void launch(BasicStreamRef<B> stream);
    void upload(BasicStreamRef<B> stream) const { executable_.upload(stream); }
    typename B::NativeGraphExec get() const noexcept { return executable_.get(); }

    /// Copies between other places, of the same type of elements and the same way.
    template <class T, CopyKind kind, class To, class From>
    void set(const CopyNode<B, T, kind>& node, To&& to, const From& from);

    template <class To>
    void set(const FillNode<B>& node, To&& to, unsigned char value);

    template <std::invocable<> F>
    void set(const HostNode<B>& node, F task);
    void set(const HostNode<B>& node, void (*function)(void*), void* data);

    /// Runs another graph, with the same nodes and order as the one it had.
    void set(const ChildNode<B>& node, const BasicGraph<B>& graph);

    /// Launches the kernel with other arguments.
    template <class... Params, class... Args>
    void set(const KernelNode<B, Params...>& node, const Args&... args) requires KernelGraphBackend<B> {
        set_launch(node, node.dims_, args...);
    }
    /// The same, with another grid too.
    template <class... Params, class... Args>
    void set_launch(const KernelNode<B, Params...>& node, const KernelDims& dims,
                    const Args&... args) requires KernelGraphBackend<B>;

private:
    friend class BasicGraphBuilder<B>;

    // What launches in flight may still call.
    struct Tasks {
        Tasks() : launched(EventOptions{.sleep_while_waiting = true}) {}
        Tasks(const Tasks&) = delete;
        Tasks& operator=(const Tasks&) = delete;
        ~Tasks() {
            try {
                launched.sync();
            } catch (...) {
                // The stream has failed, and whoever waits for it is told so.
            }
        }
        std::vector<std::pair<std::size_t, std::shared_ptr<void>>> current;
        std::vector<std::shared_ptr<void>> replaced;
        BasicEvent<B> launched;
    };

    BasicBuiltGraphExec(std::shared_ptr<const BasicGraph<B>> graph, std::uint64_t builder, std::size_t count)
        : graph_(std::move(graph)), executable_(*graph_), builder_(builder), count_(count) {}
    void check(const BasicNode<B>& node) const;
    void set_task(const HostNode<B>& node, void (*function)(void*), void* data, std::shared_ptr<void> task);

    std::shared_ptr<const BasicGraph<B>> graph_; // nodes are named by those of the graph
    BasicGraphExec<B> executable_;
    std::unique_ptr<Tasks> tasks_; // none without tasks of its own
    std::uint64_t builder_;
    std::size_t count_;
};

using GraphBuilder = BasicGraphBuilder<DefaultBackend>;
using BuiltGraphExec = BasicBuiltGraphExec<DefaultBackend>;
using HostGraphBuilder = BasicGraphBuilder<Host>;
using HostBuiltGraphExec = BasicBuiltGraphExec<Host>;
#if SLUICE_HAS_CUDA
using CudaGraphBuilder = BasicGraphBuilder<Cuda>;
using CudaBuiltGraphExec = BasicBuiltGraphExec<Cuda>;
#endif

} // namespace sluice

#include <sluice/graph/detail/graph_builder.inl>
