// The part of `Checked` that deals with graphs.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/checked/stress.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::detail {

/// A callable of a checked stream, with the number by which the checker knows it. What it owns goes in the stream's order, too.
template <class F>
class CheckedCall {
public:
    using Wrapped = F; // For the Host backend, which compares callables.

    /// `quiet`: whether nothing may be thrown from there.
    template <class Callable>
    CheckedCall(Callable&& callable, checked::Token token, bool quiet = false)
        : kept_(std::forward<Callable>(callable)), token_(token), is_quiet_(quiet),
          is_own_(token != checked::CallerScope::current() && token < checked::CallerScope::captured) {}
    CheckedCall(CheckedCall&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
        : kept_(std::move(other.kept_)), token_(other.token_), is_quiet_(other.is_quiet_),
          is_own_(std::exchange(other.is_own_, false)) {}
    CheckedCall& operator=(CheckedCall&&) = delete;
    ~CheckedCall() {
        if (!is_own_) {
            std::destroy_at(&kept_);
            return;
        }
        {
            const checked::CallerScope scope(token_);
            std::destroy_at(&kept_);
        }
        checked::call_ended(token_, !std::is_trivially_destructible_v<F>);
    }
    checked::Token token() const noexcept { return token_; }
    void operator()() {
        const bool captured =
            token_ > checked::CallerScope::captured && token_ != checked::CallerScope::unknown;
        // The stream that it was captured on, which would fail on a device, may have gone.
        const checked::QuietScope quiet(is_quiet_ || captured);
        if (captured) {
            const checked::CallScope scope(checked::call_begun(token_));
            kept_();
        } else {
            const checked::TokenScope scope(token_);
            kept_();
        }
    }

private:
    union {
        F kept_; // It goes before the rest does.
    };
    checked::Token token_;
    bool is_quiet_;
    bool is_own_; // and no longer that of the one that this was moved to
};

/// See the concept `GraphBackend` for what each function does.
template <class B>
struct CheckedGraphs : B {
    using NativeStream = typename B::NativeStream;
    using NativeGraph = typename B::NativeGraph;
    using NativeGraphExec = typename B::NativeGraphExec;
    using NativeNode = typename B::NativeNode;
    using NativeCondition = typename B::NativeCondition;

    // Capture
    // -------------------------------------------------------------------------------------------------
    static void begin_capture(NativeStream stream, CaptureMode mode) {
        B::begin_capture(stream, mode);
        checked::capture_begun(key(stream), nullptr);
    }
    static auto end_capture(NativeStream stream) {
        Ending ending{key(stream)};
        const auto graph = B::end_capture(stream);
        ending.graph = key(graph);
        return graph;
    }
    static void begin_capture_into(NativeStream stream, NativeGraph body, CaptureMode mode) {
        B::begin_capture_into(stream, body, mode);
        checked::capture_begun(key(stream), key(body));
    }
    static void end_capture_into(NativeStream stream) {
        const Ending ending{key(stream)};
        B::end_capture_into(stream);
    }
    static void capture_condition(NativeStream stream, NativeCondition condition, ConditionKind kind,
                                  int count, NativeGraph* bodies) {
        B::capture_condition(stream, condition, kind, count, bodies);
        checked::bodies_captured(key(stream), Keys(bodies, count));
    }

    // Graphs
    // --------------------------------------------------------------------------------------------------
    static auto create_graph() {
        const auto graph = B::create_graph();
        checked::graph_made(key(graph));
        return graph;
    }
    static void destroy_graph(NativeGraph graph) noexcept {
        checked::graph_destroyed(key(graph));
        B::destroy_graph(graph);
    }
    static auto instantiate(NativeGraph graph) {
        const auto executable = B::instantiate(graph);
        checked::instantiated(key(executable), key(graph));
        return executable;
    }
    static void destroy_graph_exec(NativeGraphExec executable) noexcept {
        checked::executable_destroyed(key(executable));
        B::destroy_graph_exec(executable);
    }
    static bool update(NativeGraphExec executable, NativeGraph graph) {
        const bool updated = B::update(executable, graph);
        if (updated)
            checked::instantiated(key(executable), key(graph));
        return updated;
    }
    static void launch(NativeGraphExec executable, NativeStream stream) {
        if (checked::StressState::instance().on.load(std::memory_order_relaxed)) [[unlikely]]
            checked::stress_stream<B>(stream);
        checked::launched(key(executable), key(stream));
        B::launch(executable, stream);
    }

    // Nodes by hand
    // --------------------------------------------------------------------------------------------------
    static NativeNode add_empty(NativeGraph graph, const NativeNode* after, std::size_t count) {
        return added(graph, B::add_empty(graph, after, count), after, count);
    }
    static NativeNode add_copy(NativeGraph graph, const NativeNode* after, std::size_t count, void* to,
                               const void* from, std::size_t bytes, CopyKind kind) {
        const checked::Range ranges[] = {{from, bytes, false}, {to, bytes, true}};
        return added(graph, B::add_copy(graph, after, count, to, from, bytes, kind), after, count, ranges, 2,
                     checked::Op::copy);
    }
    static NativeNode add_fill(NativeGraph graph, const NativeNode* after, std::size_t count, void* memory,
                               int value, std::size_t bytes) {
        const checked::Range range{memory, bytes, true};
        return added(graph, B::add_fill(graph, after, count, memory, value, bytes), after, count, &range, 1,
                     checked::Op::fill);
    }
    static NativeNode add_host(NativeGraph graph, const NativeNode* after, std::size_t count,
                               void (*function)(void*), void* data) {
        return added(graph, B::add_host(graph, after, count, function, data), after, count);
    }
    template <class Task>
    static NativeNode add_task(NativeGraph graph, const NativeNode* after, std::size_t count, Task task) {
        return added(graph, B::add_task(graph, after, count, std::move(task)), after, count);
    }
    /// What a node calls, which `node_calls` says of the node of a graph or an executable.
    template <class F>
    static CheckedCall<F> call_of_node(F task) {
        return CheckedCall<F>(std::move(task), checked::captured_call(), true);
    }
    template <class Graph, class F>
    static void node_calls(Graph graph, NativeNode node, const CheckedCall<F>& call) {
        checked::node_calls(key(graph), key(node), call.token());
    }
    template <class... Launch>
    static NativeNode add_kernel(NativeGraph graph, const NativeNode* after, std::size_t count,
                                 const Launch&... launch) requires requires {
        B::add_kernel(graph, after, count, launch...);
    }
    { return added(graph, B::add_kernel(graph, after, count, launch...), after, count); }
    static NativeNode add_child(NativeGraph graph, const NativeNode* after, std::size_t count,
                                NativeGraph child) {
        const NativeNode node = B::add_child(graph, after, count, child);
        checked::child_added(key(graph), key(node), Keys(after, count), key(child));
        return node;
    }
    static NativeNode add_condition(NativeGraph graph, const NativeNode* after, std::size_t after_count,
                                    NativeCondition condition, ConditionKind kind, int count,
                                    NativeGraph* bodies) {
        const NativeNode node = B::add_condition(graph, after, after_count, condition, kind, count, bodies);
        checked::bodies_added(key(graph), key(node), Keys(after, after_count), Keys(bodies, count));
        return node;
    }
    static void add_dependency(NativeGraph graph, NativeNode earlier, NativeNode later) {
        B::add_dependency(graph, earlier, later);
        checked::dependency_added(key(graph), key(earlier), key(later));
    }
    static void set_copy(NativeGraphExec executable, NativeNode node, void* to, const void* from,
                         std::size_t bytes, CopyKind kind) {
        B::set_copy(executable, node, to, from, bytes, kind);
        const checked::Range ranges[] = {{from, bytes, false}, {to, bytes, true}};
        checked::node_changed(key(executable), key(node), ranges, 2);
    }
    static void set_fill(NativeGraphExec executable, NativeNode node, void* memory, int value,
                         std::size_t bytes) {
        B::set_fill(executable, node, memory, value, bytes);
        const checked::Range range{memory, bytes, true};
        checked::node_changed(key(executable), key(node), &range, 1);
    }
    static void set_child(NativeGraphExec executable, NativeNode node, NativeGraph child) {
        B::set_child(executable, node, child);
        checked::child_changed(key(executable), key(node), key(child));
    }

private:
    // Native handles as the checker takes them.
    class Keys {
    public:
        template <class Native, class Count>
        Keys(const Native* natives, Count count) {
            for (Count i = 0; i < count; ++i)
                keys_.push_back(checked::key_of(natives[i]));
        }
        operator checked::KeyList() const noexcept { return {keys_.data(), keys_.size()}; }

    private:
        std::vector<checked::Key> keys_;
    };
    // Whatever becomes of a capture, it is over.
    struct Ending {
        checked::Key stream;
        checked::Key graph = nullptr;
        ~Ending() { checked::capture_ended(stream, graph); }
    };

    template <class Native>
    static checked::Key key(Native native) noexcept {
        return checked::key_of(native);
    }
    static NativeNode added(NativeGraph graph, NativeNode node, const NativeNode* after, std::size_t count,
                            const checked::Range* ranges = nullptr, std::size_t range_count = 0,
                            checked::Op op = checked::Op::copy) {
        checked::node_added(key(graph), key(node), Keys(after, count), ranges, range_count, op);
        return node;
    }
};

} // namespace sluice::detail
