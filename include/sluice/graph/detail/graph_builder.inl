// The bodies of graph_builder.hpp.
#pragma once

#include <atomic>

#include <sluice/graph/graph_builder.hpp>

namespace sluice {

namespace detail {

inline std::uint64_t next_builder_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

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

template <class To, class From>
void check_copy_sizes(const To& to, const From& from) {
    if (to.size() != from.size() || to.size() == 0) {
        throw Error("a copy node needs as many elements on both sides, and at least 1; the source holds " +
                    std::to_string(from.size()) + " and the destination " + std::to_string(to.size()));
    }
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
    return span;
}

template <class F>
void call_task(void* task) {
    (*static_cast<F*>(task))();
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
    void* pointers[] = {static_cast<void*>(std::addressof(values))..., nullptr};
    use(pointers);
}

} // namespace detail

// The builder
// --------------------------------------------------------------------------------------------------------------
template <GraphBackend B>
BasicGraphBuilder<B>::BasicGraphBuilder()
    : graph_(std::make_shared<BasicGraph<B>>()), id_(detail::next_builder_id()) {}

template <GraphBackend B>
BasicGraphBuilder<B>::BasicGraphBuilder(BodyTag, typename B::NativeGraph body,
                                        std::shared_ptr<BasicGraph<B>> around)
    : id_(detail::next_builder_id()), is_body_(true) {
    // The conditional node owns the body, which goes with the graph around it.
    const auto release = [around = std::move(around)](BasicGraph<B>* graph) {
        (void)graph->release();
        delete graph;
    };
    graph_.reset(new BasicGraph<B>(BasicGraph<B>::from_native_handle(body)), release);
}

template <GraphBackend B>
void BasicGraphBuilder<B>::check_usable() const {
    if (id_ == 0)
        throw Error("graph builder: it was moved from");
    if (incomplete_) {
        throw Error(
            "graph builder: a body of a conditional node threw while it was being built, and the graph is "
            "incomplete; build it anew");
    }
}

template <GraphBackend B>
void BasicGraphBuilder<B>::check(const BasicNode<B>& node) const {
    if (node.builder_ != id_)
        throw Error("graph builder: the node belongs to another builder");
}

template <GraphBackend B>
std::vector<typename B::NativeNode> BasicGraphBuilder<B>::natives(const Nodes& nodes) const {
    check_usable();
    std::vector<typename B::NativeNode> result;
    result.reserve(nodes.size());
    for (const BasicNode<B>& node : nodes) {
        check(node);
        result.push_back(node.native_);
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
detail::CopyNodeFor<B, To, From> BasicGraphBuilder<B>::copy(To&& to, const From& from, const Nodes& after) {
    typename B::NativeNode node{};
    if constexpr (detail::check_copy_node<B, To, From>()) {
        const auto to_span = detail::placed_span(to);
        const auto from_span = detail::placed_span(from);
        detail::check_copy_sizes(to_span, from_span);
        const auto before = natives(after);
        node = B::add_copy(graph_->get(), before.data(), before.size(), to_span.data(), from_span.data(),
                           to_span.bytes(), detail::CopyTraits<To, From>::kind);
    }
    return made<detail::CopyNodeFor<B, To, From>>(node);
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
template <std::invocable<> F>
HostNode<B> BasicGraphBuilder<B>::host(F task, const Nodes& after) {
    auto kept = std::make_shared<F>(std::move(task));
    tasks_.reserve(tasks_.size() + 1); // so that nothing throws once the node is there
    const HostNode<B> node = host(&detail::call_task<F>, kept.get(), after);
    tasks_.emplace_back(node.index_, std::move(kept));
    return node;
}

template <GraphBackend B>
HostNode<B> BasicGraphBuilder<B>::host(void (*function)(void*), void* data, const Nodes& after) {
    const auto before = natives(after);
    if (KernelGraphBackend<B> && is_body_)
        throw Error(
            "graph builder: a body of a conditional node cannot call the host on CUDA; put the host node "
            "before or after the conditional one");
    return made<HostNode<B>>(B::add_host(graph_->get(), before.data(), before.size(), function, data));
}

template <GraphBackend B>
ChildNode<B> BasicGraphBuilder<B>::child(const BasicGraph<B>& graph, const Nodes& after) {
    const auto before = natives(after);
    return made<ChildNode<B>>(B::add_child(graph_->get(), before.data(), before.size(), graph.get()));
}

template <GraphBackend B>
template <class... Params, class... Args>
KernelNode<B, Params...>
BasicGraphBuilder<B>::kernel(const KernelDims& dims, void (*function)(Params...),
                             const Nodes& after, const Args&... args) requires KernelGraphBackend<B> {
    typename B::NativeNode node{};
    if constexpr (detail::KernelSignature<Params...>::template takes<Args...>()) {
        const auto before = natives(after);
        const auto add = [&](void** arguments) {
            node = B::add_kernel(graph_->get(), before.data(), before.size(), dims,
                                 reinterpret_cast<void*>(function), arguments);
        };
        detail::with_kernel_arguments<Params...>(add, static_cast<Params>(args)...);
    }
    return {made<BasicNode<B>>(node), function, dims};
}

template <GraphBackend B>
ConditionSetter BasicGraphBuilder<B>::setter(BasicCondition<B>& condition) {
    using Conditions = detail::ControlFlow<B>;
    check_usable();
    Conditions::check_built(condition, "graph builder");
    return Conditions::setter(condition, Conditions::scope_in(graph_->get(), id_), "graph builder");
}

template <GraphBackend B>
template <class Body>
ConditionNode<B> BasicGraphBuilder<B>::if_nonzero(BasicCondition<B>& condition, Body&& body,
                                                  const Nodes& after) {
    return conditional("if_nonzero", condition, ConditionKind::if_nonzero, after, body);
}

template <GraphBackend B>
template <class Then, class Otherwise>
ConditionNode<B> BasicGraphBuilder<B>::if_else(BasicCondition<B>& condition, Then&& then,
                                               Otherwise&& otherwise, const Nodes& after) {
    return conditional("if_else", condition, ConditionKind::if_nonzero, after, then, otherwise);
}

template <GraphBackend B>
template <class... Bodies>
ConditionNode<B> BasicGraphBuilder<B>::select(BasicCondition<B>& condition, const Nodes& after,
                                              Bodies&&... bodies) {
    static_assert(sizeof...(Bodies) > 0, "sluice: select needs at least one body");
    return conditional("select", condition, ConditionKind::select, after, bodies...);
}

template <GraphBackend B>
template <class Body>
ConditionNode<B> BasicGraphBuilder<B>::while_nonzero(BasicCondition<B>& condition, Body&& body,
                                                     const Nodes& after) {
    return conditional("while_nonzero", condition, ConditionKind::while_nonzero, after, body);
}

template <GraphBackend B>
template <class... Bodies>
ConditionNode<B> BasicGraphBuilder<B>::conditional(const char* caller, BasicCondition<B>& condition,
                                                   ConditionKind kind, const Nodes& after,
                                                   Bodies&... bodies) {
    static_assert((std::is_invocable_v<Bodies&, BasicGraphBuilder&> && ...),
                  "sluice: each body of a conditional node must be callable as body(builder), with a "
                  "BasicGraphBuilder<B>& of the same backend");
    using Conditions = detail::ControlFlow<B>;
    const std::string place = std::string("graph builder: ") + caller;
    std::vector<typename B::NativeNode> before = natives(after);
    Conditions::check_built(condition, place.c_str());
    if (Conditions::in_use(condition)) {
        throw Error(place + ": the condition is in use by the branch or loop around this one; take another");
    }
    constexpr int count = static_cast<int>(sizeof...(Bodies));
    B::require_conditions(kind, count);
    const auto here = Conditions::scope_in(graph_->get(), id_);
    if (!Conditions::take(condition, here)) {
        if (kind != ConditionKind::while_nonzero || is_body_) {
            throw Error(place +
                        ": the condition has no value here; take setter(condition) of the same builder "
                        "first, and add a node before this one that calls set() with it");
        }
        // A launch begins with a value that is not 0, for `get` as for the node.
        Conditions::begin_loop(condition, here);
        before.assign(1, B::add_fill(graph_->get(), before.data(), before.size(),
                                     Conditions::word_of(condition), 1, sizeof(unsigned)));
        ++count_;
    }
    typename B::NativeGraph graphs[sizeof...(Bodies)] = {};
    const auto node = made<ConditionNode<B>>(
        B::add_condition(graph_->get(), before.data(), before.size(),
                         Conditions::setter_of(condition).handle, kind, count, graphs));
    const typename Conditions::Inside inside(condition, kind == ConditionKind::while_nonzero
                                                            ? Conditions::Within::loop
                                                            : Conditions::Within::branch);
    try {
        int next = 0;
        (build_body(graphs[next++], bodies), ...);
    } catch (...) {
        incomplete_ = true; // the node stays, with what bodies it has
        throw;
    }
    return node;
}

template <GraphBackend B>
template <class F>
void BasicGraphBuilder<B>::build_body(typename B::NativeGraph graph, F& body) {
    BasicGraphBuilder builder(BodyTag{}, graph, graph_);
    body(builder);
    builder.check_usable();
    for (auto& [index, task] : builder.tasks_)
        tasks_.emplace_back(no_node, std::move(task));
}

template <GraphBackend B>
void BasicGraphBuilder<B>::depends(const BasicNode<B>& node, const BasicNode<B>& on) {
    check(node);
    check(on);
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
        executable.tasks_ = std::make_unique<typename BasicBuiltGraphExec<B>::Tasks>();
        executable.tasks_->current = tasks_;
    }
    return executable;
}

// The executable
// --------------------------------------------------------------------------------------------------------------
template <GraphBackend B>
void BasicBuiltGraphExec<B>::check(const BasicNode<B>& node) const {
    if (node.builder_ != builder_)
        throw Error("graph builder: the node belongs to another builder than the executable");
    if (node.index_ >= count_)
        throw Error("graph builder: the node was added after the executable was instantiated");
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::launch(BasicStreamRef<B> stream) {
    executable_.launch(stream);
    if (tasks_ != nullptr)
        tasks_->launched.record(stream);
}

template <GraphBackend B>
template <class T, CopyKind kind, class To, class From>
void BasicBuiltGraphExec<B>::set(const CopyNode<B, T, kind>& node, To&& to, const From& from) {
    if constexpr (detail::check_copy_node<B, To, From>()) {
        using Traits = detail::CopyTraits<To, From>;
        static_assert(std::is_same_v<typename Traits::Element, T> && Traits::kind == kind,
                      "sluice: a copy node keeps its type of elements and the way that it copies");
        check(node);
        const auto to_span = detail::placed_span(to);
        const auto from_span = detail::placed_span(from);
        detail::check_copy_sizes(to_span, from_span);
        B::set_copy(executable_.get(), node.native_, to_span.data(), from_span.data(), to_span.bytes(),
                    kind);
    }
}

template <GraphBackend B>
template <class To>
void BasicBuiltGraphExec<B>::set(const FillNode<B>& node, To&& to, unsigned char value) {
    const auto span = detail::fill_node_span<B>(to);
    check(node);
    B::set_fill(executable_.get(), node.native_, span.data(), value, span.bytes());
}

template <GraphBackend B>
template <std::invocable<> F>
void BasicBuiltGraphExec<B>::set(const HostNode<B>& node, F task) {
    auto kept = std::make_shared<F>(std::move(task));
    void* const data = kept.get();
    set_task(node, &detail::call_task<F>, data, std::move(kept));
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::set(const HostNode<B>& node, void (*function)(void*), void* data) {
    set_task(node, function, data, nullptr);
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::set_task(const HostNode<B>& node, void (*function)(void*), void* data,
                                       std::shared_ptr<void> task) {
    check(node);
    if (tasks_ == nullptr && task != nullptr)
        tasks_ = std::make_unique<Tasks>();
    if (tasks_ != nullptr) {
        if (tasks_->launched.is_done())
            tasks_->replaced.clear();
        tasks_->replaced.reserve(tasks_->replaced.size() +
                                 1); // so that nothing throws once the node has changed
        tasks_->current.reserve(tasks_->current.size() + 1);
    }
    B::set_host(executable_.get(), node.native_, function, data);
    if (tasks_ == nullptr)
        return;
    for (auto& [index, kept] : tasks_->current) {
        if (index == node.index_) {
            tasks_->replaced.push_back(std::exchange(kept, std::move(task)));
            return;
        }
    }
    tasks_->current.emplace_back(node.index_, std::move(task));
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::set(const ChildNode<B>& node, const BasicGraph<B>& graph) {
    check(node);
    B::set_child(executable_.get(), node.native_, graph.get());
}

template <GraphBackend B>
template <class... Params, class... Args>
void BasicBuiltGraphExec<B>::set_launch(const KernelNode<B, Params...>& node, const KernelDims& dims,
                                        const Args&... args) requires KernelGraphBackend<B> {
    if constexpr (detail::KernelSignature<Params...>::template takes<Args...>()) {
        check(node);
        const auto set = [&](void** arguments) {
            B::set_kernel(executable_.get(), node.native_, dims, reinterpret_cast<void*>(node.function_),
                          arguments);
        };
        detail::with_kernel_arguments<Params...>(set, static_cast<Params>(args)...);
    }
}

} // namespace sluice
