// The bodies of built_graph_exec.hpp.
#pragma once

#include <type_traits>
#include <utility>

#include <sluice/backend/detail/checked/object_checks.hpp>
#include <sluice/backend/detail/device_event.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/graph/built_graph_exec.hpp>

namespace sluice {

namespace detail {

template <class F>
void call_task(void* task) {
    (*static_cast<F*>(task))();
}
template <class F>
constexpr auto caller_of(const Shared<F>&) noexcept {
    return &call_task<F>;
}

/// What a node calls, as the backend has it.
template <class B, class F>
auto make_node_task(F task) {
    auto&& call = ObjectChecks<B>::node_call(task);
    return make_shared_value<std::remove_reference_t<decltype(call)>>(std::move(call));
}

} // namespace detail

template <GraphBackend B>
struct BasicBuiltGraphExec<B>::Tasks {
    Tasks() : launched(EventOptions{.sleep_while_waiting = true}) {}
    Tasks& operator=(Tasks&&) = delete;
    ~Tasks() { launched.settle(); }

    detail::List<std::pair<std::size_t, detail::Shared<void>>> current; // by the nodes' indices
    detail::List<detail::Shared<void>> replaced;
    detail::DeviceEvent<B> launched;
};

template <GraphBackend B>
void BasicBuiltGraphExec<B>::check(const BasicNode<B>& node) const {
    (void)detail::owned_by("graph executable", executable_.get());
    if (node.builder_ != builder_)
        throw Error("graph builder: the node belongs to another builder than the executable");
    if (node.index_ >= count_)
        throw Error("graph builder: the node was added after the executable was instantiated");
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::launch(BasicStreamRef<B> stream) {
    executable_.launch(stream);
    if (tasks_ != nullptr)
        detail::or_synced(stream, [&] { tasks_->launched.record(stream); });
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
        detail::check_copy_spans(to_span, from_span);
        B::set_copy(executable_.get(), node.native_, to_span.data(), from_span.data(), to_span.bytes(), kind);
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
template <class F>
void BasicBuiltGraphExec<B>::set(const HostNode<B>& node, F task) {
    if constexpr (detail::check_node_task<F>()) {
        detail::require_callable("graph builder: the task", task);
        auto kept = detail::make_node_task<B>(std::move(task));
        set_task(node, detail::caller_of(kept), kept.get(), kept);
        detail::ObjectChecks<B>::node_calls(executable_.get(), node.native_, *kept);
    }
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::set(const HostNode<B>& node, void (*function)(void*), void* data) {
    detail::require_callable("graph builder: the function", function);
    set_task(node, function, data, nullptr);
}

template <GraphBackend B>
void BasicBuiltGraphExec<B>::set_task(const HostNode<B>& node, void (*function)(void*), void* data,
                                      detail::Shared<void> task) {
    check(node);
    if (tasks_ == nullptr && task != nullptr)
        tasks_ = detail::make_owned<Tasks>();
    if (tasks_ != nullptr) {
        if (tasks_->launched.is_over())
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
    B::set_child(executable_.get(), node.native_, detail::owned_by("graph", graph.get()));
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
