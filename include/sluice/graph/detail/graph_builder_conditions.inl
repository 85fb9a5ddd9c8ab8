// The bodies of graph_builder.hpp: branches and loops.
#pragma once

#include <string>
#include <type_traits>

#include <sluice/graph/graph_builder.hpp>

namespace sluice {

template <GraphBackend B>
ConditionSetter BasicGraphBuilder<B>::setter(BasicCondition<B>& condition) {
    using Conditions = detail::ControlFlow<B>;
    check_usable();
    Conditions::check_built(condition, "graph builder");
    const unsigned* const word = Conditions::word_of(condition);
    bool known = false;
    for (const auto& [of, since] : setters_)
        known = known || of == word;
    if (!known)
        setters_.emplace_back(word, count_);
    return Conditions::setter(condition, Conditions::scope_in(graph_->get(), id_), "graph builder");
}

// Has a conditional node come after whatever may call `set`: which nodes hold the setter is not known of callables.
template <GraphBackend B>
void BasicGraphBuilder<B>::add_deciders(BasicCondition<B>& condition, const std::string& place,
                                        std::vector<typename B::NativeNode>& before) {
    const unsigned* const word = detail::ControlFlow<B>::word_of(condition);
    std::size_t since = 0;
    for (std::size_t i = 0; i < setters_.size(); ++i) {
        if (setters_[i].first != word)
            continue;
        since = setters_[i].second;
        setters_[i] = setters_.back();
        setters_.pop_back();
        break;
    }
    bool decided = false;
    for (const auto& [index, node] : deciders_) {
        if (index < since)
            continue;
        decided = true;
        detail::add_once(before, node);
    }
    if (!decided) {
        throw Error(place + ": no node calls set() of the condition; add one with the setter, between "
                            "setter(condition) and this one");
    }
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
    (detail::require_callable("graph builder: a body", bodies), ...);
    std::vector<typename B::NativeNode> before = natives(after);
    Conditions::check_built(condition, place.c_str());
    if (Conditions::in_use(condition)) {
        throw Error(place + ": the condition is in use by the branch or loop around this one; take another");
    }
    constexpr int count = static_cast<int>(sizeof...(Bodies));
    B::require_conditions(kind, count);
    const auto here = Conditions::scope_in(graph_->get(), id_);
    const bool decided_before = Conditions::take(condition, here);
    if (!decided_before) {
        if (kind != ConditionKind::while_nonzero || is_body_) {
            throw Error(place + ": the condition has no value here; take setter(condition) of the same "
                                "builder first, and add a node before this one that calls set() with it");
        }
        // A launch begins with a value that is not 0, for `get` as for the node.
        Conditions::begin_loop(condition, here);
        before.assign(1, B::add_fill(graph_->get(), before.data(), before.size(),
                                     Conditions::word_of(condition), 1, sizeof(unsigned)));
        ++count_;
    } else {
        add_deciders(condition, place, before);
    }
    typename B::NativeGraph graphs[sizeof...(Bodies)] = {};
    const auto node = made<ConditionNode<B>>(B::add_condition(graph_->get(), before.data(), before.size(),
                                                              Conditions::setter_of(condition).handle, kind,
                                                              count, graphs));
    const typename Conditions::Inside inside(condition, kind == ConditionKind::while_nonzero
                                                            ? Conditions::Within::loop
                                                            : Conditions::Within::branch);
    try {
        int next = 0;
        (build_body(graphs[next++], bodies), ...);
        if (!decided_before)
            Conditions::require_asked(condition, place);
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

} // namespace sluice
