// The bodies of graph_builder.hpp: nodes and edges. Those with bodies of their own are in graph_builder_conditions.inl.
#pragma once

#include <type_traits>

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/graph/graph_builder.hpp>

namespace sluice {

namespace detail {

// Never 0, which a builder has that was moved from.
inline std::uint64_t next_builder_id() noexcept {
    static Atomic<std::uint64_t> last;
    return last.add(1);
}

} // namespace detail

template <GraphBackend B>
BasicGraphBuilder<B>::BasicGraphBuilder()
    : graph_(detail::make_shared_value<BasicGraph<B>>()), id_(detail::next_builder_id()) {}

template <GraphBackend B>
BasicGraphBuilder<B>::BasicGraphBuilder(BasicGraphBuilder&& other) noexcept
    : graph_(std::move(other.graph_)), tasks_(std::move(other.tasks_)), setters_(std::move(other.setters_)),
      deciders_(std::move(other.deciders_)), id_(std::exchange(other.id_, 0)), count_(other.count_),
      is_body_(other.is_body_), incomplete_(other.incomplete_) {}

template <GraphBackend B>
BasicGraphBuilder<B>& BasicGraphBuilder<B>::operator=(BasicGraphBuilder&& other) noexcept {
    graph_ = std::move(other.graph_);
    tasks_ = std::move(other.tasks_);
    setters_ = std::move(other.setters_);
    deciders_ = std::move(other.deciders_);
    id_ = std::exchange(other.id_, 0);
    count_ = other.count_;
    is_body_ = other.is_body_;
    incomplete_ = other.incomplete_;
    return *this;
}

template <GraphBackend B>
BasicGraphBuilder<B>::BasicGraphBuilder(BodyTag, typename B::NativeGraph body,
                                        detail::Shared<BasicGraph<B>> around)
    : id_(detail::next_builder_id()), is_body_(true) {
    // The conditional node owns the body, which goes with the graph around it.
    struct Body {
        BasicGraph<B> graph;
        detail::Shared<BasicGraph<B>> around;
        Body(typename B::NativeGraph native, detail::Shared<BasicGraph<B>> of)
            : graph(BasicGraph<B>::from_native_handle(native)), around(std::move(of)) {}
        Body& operator=(Body&&) = delete;
        ~Body() { (void)graph.release(); }
    };
    const auto owned = detail::make_shared_value<Body>(body, std::move(around));
    graph_ = detail::Shared<BasicGraph<B>>(owned, &owned->graph);
}

template <GraphBackend B>
void BasicGraphBuilder<B>::check_usable() const {
    if (id_ == 0)
        detail::throw_moved_from("graph builder");
    if (incomplete_) {
        throw Error("graph builder: a body of a conditional node threw while it was being built, and the "
                    "graph is incomplete; build it anew");
    }
}

template <GraphBackend B>
void BasicGraphBuilder<B>::check(const BasicNode<B>& node) const {
    if (node.builder_ != id_)
        throw Error("graph builder: the node belongs to another builder");
}

template <GraphBackend B>
std::vector<typename B::NativeNode> BasicGraphBuilder<B>::natives(const Nodes& nodes,
                                                                  detail::List<bool>* early) const {
    check_usable();
    std::vector<typename B::NativeNode> result;
    result.reserve(nodes.size());
    for (const BasicNode<B>& node : nodes) {
        check(node);
        result.push_back(node.native_);
        if (node.early_ && !node.is_kernel_)
            throw Error(
                "graph builder: only a kernel lets another begin early; name the node without early()");
        if (node.early_ && early == nullptr)
            throw Error(
                "graph builder: only a kernel begins early; name what it comes after without early()");
        if (early != nullptr)
            early->push_back(node.early_);
    }
    return result;
}

template <GraphBackend B>
EmptyNode<B> BasicGraphBuilder<B>::empty(const Nodes& after) {
    const auto before = natives(after);
    return made<EmptyNode<B>>(B::add_empty(graph_->get(), before.data(), before.size()));
}

template <GraphBackend B>
template <class To, class From>
CopyNodeOf<B, To, From> BasicGraphBuilder<B>::copy(To&& to, const From& from, const Nodes& after) {
    typename B::NativeNode node{};
    if constexpr (detail::check_copy_node<B, To, From>()) {
        const auto to_span = detail::placed_span(to);
        const auto from_span = detail::placed_span(from);
        detail::check_copy_spans(to_span, from_span);
        const auto before = natives(after);
        node = B::add_copy(graph_->get(), before.data(), before.size(), to_span.data(), from_span.data(),
                           to_span.bytes(), detail::CopyTraits<To, From>::kind);
    }
    return made<CopyNodeOf<B, To, From>>(node);
}

template <GraphBackend B>
template <class To>
FillNode<B> BasicGraphBuilder<B>::fill(To&& to, unsigned char value, const Nodes& after) {
    const auto span = detail::fill_node_span<B>(to);
    const auto before = natives(after);
    return made<FillNode<B>>(
        B::add_fill(graph_->get(), before.data(), before.size(), span.data(), value, span.bytes()));
}

template <GraphBackend B>
template <class F>
HostNode<B> BasicGraphBuilder<B>::host(F work, const Nodes& after) {
    if constexpr (detail::check_node_task<F>()) {
        detail::require_callable("graph builder: the task", work);
        auto kept = detail::make_node_task<B>(std::move(work));
        tasks_.reserve(tasks_.size() + 1); // so that nothing throws once the node is there
        const HostNode<B> node = host(detail::caller_of(kept), kept.get(), after);
        detail::ObjectChecks<B>::node_calls(graph_->get(), node.native_, *kept);
        tasks_.emplace_back(node.index_, std::move(kept));
        return node;
    } else {
        return made<HostNode<B>>(typename B::NativeNode{});
    }
}

template <GraphBackend B>
template <class F>
HostNode<B> BasicGraphBuilder<B>::task(F work, const Nodes& after) requires(!KernelGraphBackend<B>) {
    detail::List<bool> early;
    (void)natives(after, &early);
    Nodes plain = after;
    for (BasicNode<B>& node : plain)
        node.early_ = false;
    HostNode<B> node = host(std::move(work), plain);
    node.is_kernel_ = true;
    return node;
}

template <GraphBackend B>
HostNode<B> BasicGraphBuilder<B>::host(void (*function)(void*), void* data, const Nodes& after) {
    detail::require_callable("graph builder: the function", function);
    const auto before = natives(after);
    if (KernelGraphBackend<B> && is_body_)
        throw Error("graph builder: a body of a conditional node cannot call the host on CUDA; put the host "
                    "node before or after the conditional one");
    reserve_decider();
    const auto node =
        made<HostNode<B>>(B::add_host(graph_->get(), before.data(), before.size(), function, data));
    deciders_.emplace_back(node.index_, node.native_);
    return node;
}

template <GraphBackend B>
ChildNode<B> BasicGraphBuilder<B>::child(const BasicGraph<B>& graph, const Nodes& after) {
    const auto before = natives(after);
    reserve_decider();
    const auto node = made<ChildNode<B>>(
        B::add_child(graph_->get(), before.data(), before.size(), detail::owned_by("graph", graph.get())));
    deciders_.emplace_back(node.index_, node.native_);
    return node;
}

template <GraphBackend B>
template <class... Params, class... Args>
KernelNode<B, Params...> BasicGraphBuilder<B>::kernel(const KernelDims& dims, void (*function)(Params...),
                                                      const Nodes& after,
                                                      const Args&... args) requires KernelGraphBackend<B> {
    typename B::NativeNode node{};
    reserve_decider();
    if constexpr (detail::KernelSignature<Params...>::template takes<Args...>()) {
        detail::List<bool> early;
        const auto before = natives(after, &early);
        bool any = false;
        for (const bool one : early)
            any = any || one;
        const auto add = [&](void** arguments) {
            node = B::add_kernel(graph_->get(), before.data(), before.size(), dims,
                                 reinterpret_cast<void*>(function), arguments, any ? early.data() : nullptr);
        };
        detail::with_kernel_arguments<Params...>(add, static_cast<Params>(args)...);
    }
    auto made_node = made<BasicNode<B>>(node);
    made_node.is_kernel_ = true;
    if constexpr ((std::is_class_v<std::remove_cvref_t<Params>> || ...))
        deciders_.emplace_back(made_node.index_, node);
    return {made_node, function, dims};
}

template <GraphBackend B>
void BasicGraphBuilder<B>::depends(const BasicNode<B>& node, const BasicNode<B>& on) {
    check_usable();
    check(node);
    check(on);
    if (node.early_ || on.early_)
        throw Error("graph builder: early() belongs in the `after` of the kernel that begins early");
    if (on.index_ >= node.index_) {
        throw Error(
            "graph builder: a node can only depend on one that was added before it; add that one first");
    }
    B::add_dependency(graph_->get(), on.native_, node.native_);
}

template <GraphBackend B>
BasicBuiltGraphExec<B> BasicGraphBuilder<B>::instantiate() const {
    check_usable();
    if (is_body_)
        throw Error("graph builder: a body runs with the graph around it; instantiate that one");
    if (count_ == 0)
        throw Error("graph builder: there is nothing to instantiate; add at least 1 node");
    BasicBuiltGraphExec<B> executable{graph_, id_, count_};
    if (!tasks_.empty()) {
        executable.tasks_ = detail::make_owned<typename BasicBuiltGraphExec<B>::Tasks>();
        executable.tasks_->current = tasks_;
    }
    return executable;
}

} // namespace sluice
