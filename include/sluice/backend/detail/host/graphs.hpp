/// \file
/// The Host backend's graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/host/capture.hpp>
#include <sluice/backend/detail/host/event.hpp>
#include <sluice/backend/detail/host/graph.hpp>
#include <sluice/backend/detail/host/graph_exec.hpp>
#include <sluice/backend/detail/host/memory_map.hpp>
#include <sluice/backend/detail/host/node.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

/// The part of `Host` that deals with graphs. See the concept `GraphBackend` for what each function does.
///
/// A launch is one task of its stream. Branches that do not depend on each other run at the same time, the first on
/// the stream's thread and each further one on a thread of the program's; up to 32 of them. Conditions are read when
/// their node is reached.
template <class Lazy>
struct BasicGraphs {
    using Node = BasicNode<Lazy>;
    using Graph = BasicGraph<Lazy>;
    using GraphExec = BasicGraphExec<Lazy>;
    using Queue = BasicQueue<Lazy>;
    using Capture = BasicCapture<Lazy>;
    using MemoryMap = BasicMemoryMap<Lazy>;

    using NativeGraph = Graph*;
    using NativeGraphExec = GraphExec*;
    using NativeNode = Node*;
    using NativeCondition = unsigned long long;

    /// There is no default stream.
    struct DefaultStreamWatch {
        explicit DefaultStreamWatch(int /*attempts*/) noexcept {}
        bool used() const noexcept { return false; }
    };

    static ObjectCounts& counts() noexcept {
        static ObjectCounts counts;
        return counts;
    }

    // Capture
    // -------------------------------------------------------------------------------------------------
    static bool is_default_stream(Queue*) noexcept { return false; }
    static bool is_capturing(Queue* stream) { return stream->capture() != nullptr; }
    static void begin_capture(Queue* stream, CaptureMode mode) { Capture::begin(*stream, mode); }
    static NativeGraph end_capture(Queue* stream) {
        std::unique_ptr<Graph> graph = capture_of(stream, "end_capture")->end(*stream);
        if (graph == nullptr)
            throw Error("end_capture: the stream was captured into a body; end_capture_into ends that");
        counts().graphs.add();
        return graph.release();
    }

    // Graphs
    // --------------------------------------------------------------------------------------------------
    static NativeGraph create_graph() {
        auto* graph = new Graph;
        counts().graphs.add();
        return graph;
    }
    static void destroy_graph(NativeGraph graph) noexcept {
        delete graph;
        counts().graphs.remove();
    }
    static std::size_t node_count(NativeGraph graph) { return graph->node_count(); }
    static std::size_t edge_count(NativeGraph graph) { return graph->edge_count(); }
    static void write_dot(NativeGraph graph, const char* path) { graph->write_dot(path); }
    /// Of the nodes' kinds, order and parameters; of callables their types, not what they hold.
    static std::uint64_t signature(NativeGraph graph, const std::vector<const void*>& own = {}) {
        return graph->signature(own);
    }
    /// The device memory that copies and fills name.
    static std::vector<const void*> device_pointers(NativeGraph graph) {
        std::vector<const void*> pointers;
        graph->visit_memory([&](const void* memory) {
            if (is_device_memory(memory))
                pointers.push_back(memory);
        });
        return pointers;
    }
    static bool is_device_memory(const void* pointer) { return MemoryMap::instance().contains(pointer); }

    static void record_external(BasicEvent<Lazy>* event, Queue* stream) {
        capture_of(stream, "record_external")->append(*stream, task_node(event->mark_of_replays()));
        ++detail::capture_ledger().marks;
    }

    // Executables
    // --------------------------------------------------------------------------------------------------
    static NativeGraphExec instantiate(NativeGraph graph) {
        auto* executable = new GraphExec(*graph);
        counts().executables.add();
        return executable;
    }
    static void destroy_graph_exec(NativeGraphExec executable) noexcept {
        delete executable;
        counts().executables.remove();
    }
    static bool update(NativeGraphExec executable, NativeGraph graph) { return executable->update(*graph); }
    /// Does nothing: there is nowhere to upload to.
    static void upload(NativeGraphExec, Queue* stream) { refuse_in_capture(stream, "upload"); }
    static void launch(NativeGraphExec executable, Queue* stream) {
        refuse_in_capture(stream, "launch");
        executable->launch(*stream);
    }

    // Nodes by hand
    // --------------------------------------------------------------------------------------------------
    static NativeNode add_empty(NativeGraph graph, const NativeNode* after, std::size_t count) {
        return graph->add(Node{}, after, count);
    }
    static NativeNode add_copy(NativeGraph graph, const NativeNode* after, std::size_t count, void* to,
                               const void* from, std::size_t bytes, CopyKind) {
        return graph->add(copy_node(to, from, bytes), after, count);
    }
    static NativeNode add_fill(NativeGraph graph, const NativeNode* after, std::size_t count, void* memory,
                               int value, std::size_t bytes) {
        return graph->add(fill_node(memory, static_cast<unsigned char>(value), 1, bytes), after, count);
    }
    static NativeNode add_host(NativeGraph graph, const NativeNode* after, std::size_t count,
                               void (*function)(void*), void* data) {
        return graph->add(Node{.kind = NodeKind::host, .function = some(function), .data = data}, after,
                          count);
    }
    /// Any callable, as `Host::enqueue` takes them.
    static NativeNode add_task(NativeGraph graph, const NativeNode* after, std::size_t count, Task task) {
        return graph->add(task_node(std::move(task)), after, count);
    }
    static NativeNode add_child(NativeGraph graph, const NativeNode* after, std::size_t count,
                                NativeGraph child) {
        return graph->add(Node{.kind = NodeKind::child, .bodies = {child->clone()}}, after, count);
    }
    /// Puts `later` behind `earlier`, which must have been added before it. Throws `Error`.
    static void add_dependency(NativeGraph graph, NativeNode earlier, NativeNode later) {
        graph->add_dependency(earlier, later);
    }
    static void set_copy(NativeGraphExec executable, NativeNode node, void* to, const void* from,
                         std::size_t bytes, CopyKind) {
        executable->change(node, NodeKind::copy, [&](Node& changed) {
            changed.to = to;
            changed.from = from;
            changed.bytes = bytes;
        });
    }
    static void set_fill(NativeGraphExec executable, NativeNode node, void* memory, int value,
                         std::size_t bytes) {
        executable->change(node, NodeKind::fill, [&](Node& changed) {
            changed.to = memory;
            changed.value = static_cast<unsigned char>(value);
            changed.element_bytes = 1;
            changed.bytes = bytes;
        });
    }
    static void set_host(NativeGraphExec executable, NativeNode node, void (*function)(void*), void* data) {
        executable->change(node, NodeKind::host, [&](Node& changed) {
            changed.function = some(function);
            changed.data = data;
        });
    }
    static void set_task(NativeGraphExec executable, NativeNode node, Task task) {
        executable->change(node, NodeKind::task,
                           [&](Node& changed) { changed.task = std::make_shared<Task>(std::move(task)); });
    }
    static void set_child(NativeGraphExec executable, NativeNode node, NativeGraph child) {
        executable->change(node, NodeKind::child, [&](Node& changed) {
            if (!changed.bodies.front()->same_shape(*child))
                throw Error("set_child: the graph has other nodes or edges than the child that it replaces");
            changed.bodies.front() = child->clone();
        });
    }

    // Conditional nodes
    // --------------------------------------------------------------------------------------------------
    static void require_conditions(ConditionKind, int) noexcept {}
    static NativeGraph capturing_graph(Queue* stream) {
        return capture_of(stream, "capturing_graph")->graph();
    }
    /// A condition is the address of its value.
    static NativeCondition create_condition(NativeGraph, unsigned* word) {
        return reinterpret_cast<std::uintptr_t>(word);
    }
    static NativeNode add_condition(NativeGraph graph, const NativeNode* after, std::size_t after_count,
                                    NativeCondition condition, ConditionKind kind, int count,
                                    NativeGraph* bodies) {
        return graph->add(condition_node(condition, kind, count, bodies), after, after_count);
    }
    static void capture_condition(Queue* stream, NativeCondition condition, ConditionKind kind, int count,
                                  NativeGraph* bodies);
    static void begin_capture_into(Queue* stream, NativeGraph body, CaptureMode mode) {
        Capture::begin(*stream, mode, body);
    }
    static void end_capture_into(Queue* stream) {
        const std::shared_ptr<Capture> capture = capture_of(stream, "end_capture_into");
        Graph* const body = capture->target();
        if (capture->end(*stream) != nullptr)
            throw Error("end_capture_into: the stream was not captured into a body; end_capture ends that");
        detail::capture_ledger().in_bodies += body->node_count();
    }

private:
    template <class>
    friend struct BasicBackend;

    static Node copy_node(void* to, const void* from, std::size_t bytes) {
        return {.kind = NodeKind::copy, .to = to, .from = from, .bytes = bytes};
    }
    static Node fill_node(void* memory, std::uint32_t value, std::size_t element_bytes, std::size_t bytes) {
        return {.kind = NodeKind::fill,
                .to = memory,
                .bytes = bytes,
                .value = value,
                .element_bytes = element_bytes};
    }
    static Node task_node(Task task) {
        return {.kind = NodeKind::task, .task = std::make_shared<Task>(std::move(task))};
    }
    // Says which graphs its bodies are.
    static Node condition_node(NativeCondition condition, ConditionKind kind, int count,
                               NativeGraph* bodies) {
        Node node{.kind = NodeKind::condition,
                  .word = reinterpret_cast<const unsigned*>(static_cast<std::uintptr_t>(condition)),
                  .condition = kind};
        for (int body = 0; body < count; ++body) {
            node.bodies.push_back(std::make_shared<Graph>());
            bodies[body] = node.bodies.back().get();
        }
        return node;
    }
    static auto some(void (*function)(void*)) -> void (*)(void*) {
        if (function == nullptr)
            throw Error("a host node needs a function, and was given none");
        return function;
    }

    // Whether a capture is under way anywhere. Relaxed: whoever captures a stream that this thread uses has told
    // it so.
    static bool any_capture() noexcept { return captures_under_way.load(std::memory_order_relaxed) != 0; }
    static std::shared_ptr<Capture> capture_of(Queue* stream, const char* caller) {
        std::shared_ptr<Capture> capture = stream->capture();
        if (capture == nullptr)
            throw Error(std::string(caller) + ": the stream is not being captured");
        return capture;
    }
    static void refuse_in_capture(Queue* stream, const char* caller) {
        if (!any_capture()) [[likely]]
            return;
        if (const auto capture = stream->capture(); capture != nullptr)
            capture->refuse(std::string(caller) + ": the stream is being captured");
    }
    // Gives `make()` to the stream's capture, and says whether there is one. Notes the operation for the guard of
    // a capture that this thread may be making.
    template <class Make>
    static bool captured(Queue* stream, Make&& make) {
        const auto capture = stream->capture();
        detail::CaptureLedger& ledger = detail::capture_ledger();
        if (ledger.depth > 0)
            ledger.note(capture != nullptr);
        if (capture == nullptr)
            return false;
        capture->append(*stream, make());
        return true;
    }
};

// ---------------------------------------------------------------------------------------------------------------

template <class Lazy>
void BasicGraphs<Lazy>::capture_condition(Queue* stream, NativeCondition condition, ConditionKind kind,
                                          int count, NativeGraph* bodies) {
    const std::shared_ptr<Capture> capture = capture_of(stream, "capture_condition");
    const int most = kind == ConditionKind::while_nonzero ? 1 : kind == ConditionKind::if_nonzero ? 2 : count;
    if (count < 1 || count > most || condition == 0)
        capture->refuse(
            "capture_condition: a condition with a value, and as many bodies as its kind takes, were "
            "expected");
    capture->append(*stream, condition_node(condition, kind, count, bodies));
}

} // namespace sluice::host
