// Bodies of graphs.hpp.
#pragma once

#include <string>
#include <utility>

#include <sluice/backend/detail/capture_ledger.hpp>
#include <sluice/backend/detail/host/capture.hpp>
#include <sluice/backend/detail/host/event.hpp>
#include <sluice/backend/detail/host/graph.hpp>
#include <sluice/backend/detail/host/graph_exec.hpp>
#include <sluice/backend/detail/host/memory_map.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::host {

// Whether a capture is under way anywhere. Relaxed: a thread that captures a stream that this thread uses is synchronized with it.
inline bool any_capture() noexcept { return captures_under_way.load(std::memory_order_relaxed) != 0; }

inline detail::Shared<Capture> capture_of(Queue* stream, const char* caller) {
    detail::Shared<Capture> capture = stream->capture();
    if (capture == nullptr)
        throw Error(std::string(caller) + ": the stream is not being captured");
    return capture;
}

inline void refuse_in_capture(Queue* stream, const char* caller) {
    if (const auto capture = stream->capture(); capture != nullptr) [[unlikely]]
        capture->refuse(std::string(caller) + ": the stream is being captured");
}

// Gives `make()` to the stream's capture, and says whether there is one. Notes the operation for the guard of a capture that this
// thread may be making.
template <class Make>
bool captured(Queue* stream, Make&& make) {
    if (!any_capture()) [[likely]]
        return false;
    const auto capture = stream->capture();
    detail::CaptureLedger& ledger = detail::capture_ledger();
    if (ledger.depth > 0)
        ledger.note(capture != nullptr);
    if (capture == nullptr)
        return false;
    capture->append(*stream, make());
    return true;
}

inline Node copy_node(void* to, const void* from, std::size_t bytes) {
    return {.kind = NodeKind::copy, .to = to, .from = from, .bytes = bytes};
}

inline Node fill_node(void* memory, std::uint32_t value, std::size_t element_bytes, std::size_t bytes) {
    return {
        .kind = NodeKind::fill, .to = memory, .bytes = bytes, .value = value, .element_bytes = element_bytes};
}

inline Node task_node(Task task) {
    return {.kind = NodeKind::task, .task = detail::make_shared_value<Task>(std::move(task))};
}

// Says which graphs its bodies are.
inline Node condition_node(Graphs::NativeCondition condition, ConditionKind kind, int count, Graph** bodies) {
    Node node{.kind = NodeKind::condition,
              .word = reinterpret_cast<const unsigned*>(static_cast<std::uintptr_t>(condition)),
              .condition = kind};
    for (int body = 0; body < count; ++body) {
        node.bodies.push_back(detail::make_shared_value<Graph>());
        bodies[body] = node.bodies.back().get();
    }
    return node;
}

inline auto some(void (*function)(void*)) -> void (*)(void*) {
    if (function == nullptr)
        throw Error("a host node needs a function, and was given none");
    return function;
}

SLUICE_BODY bool Graphs::is_capturing(Queue* stream) { return stream->capture() != nullptr; }

SLUICE_BODY void Graphs::begin_capture(Queue* stream, CaptureMode mode) { Capture::begin(*stream, mode); }

SLUICE_BODY Graphs::NativeGraph Graphs::end_capture(Queue* stream) {
    detail::Owned<Graph> graph = capture_of(stream, "end_capture")->end(*stream);
    if (graph == nullptr)
        throw Error("end_capture: the stream was captured into a body; end_capture_into ends that");
    counts().graphs.add();
    return graph.give();
}

SLUICE_BODY Graphs::NativeGraph Graphs::create_graph() {
    auto* graph = new Graph;
    counts().graphs.add();
    return graph;
}

SLUICE_BODY void Graphs::destroy_graph(NativeGraph graph) noexcept {
    delete graph;
    counts().graphs.remove();
}

SLUICE_BODY std::size_t Graphs::node_count(NativeGraph graph) { return graph->node_count(); }

SLUICE_BODY std::size_t Graphs::edge_count(NativeGraph graph) { return graph->edge_count(); }

SLUICE_BODY void Graphs::write_dot(NativeGraph graph, const char* path) { graph->write_dot(path); }

SLUICE_BODY std::uint64_t Graphs::signature(NativeGraph graph, const std::vector<const void*>& own) {
    return graph->signature(own);
}

SLUICE_BODY std::vector<const void*> Graphs::device_pointers(NativeGraph graph) {
    std::vector<const void*> pointers;
    graph->visit_memory([&](const void* memory) {
        if (is_device_memory(memory))
            pointers.push_back(memory);
    });
    return pointers;
}

SLUICE_BODY bool Graphs::is_device_memory(const void* pointer) {
    return MemoryMap::instance().contains(pointer);
}

SLUICE_BODY void Graphs::record_external(Event* event, Queue* stream) {
    capture_of(stream, "record_external")->append(*stream, task_node(event->mark_of_replays()));
    ++detail::capture_ledger().marks;
}

SLUICE_BODY Graphs::NativeGraphExec Graphs::instantiate(NativeGraph graph) {
    auto* executable = new GraphExec(*graph);
    counts().executables.add();
    return executable;
}

SLUICE_BODY void Graphs::destroy_graph_exec(NativeGraphExec executable) noexcept {
    delete executable;
    counts().executables.remove();
}

SLUICE_BODY bool Graphs::update(NativeGraphExec executable, NativeGraph graph) {
    return executable->update(*graph);
}

SLUICE_BODY void Graphs::upload(NativeGraphExec, Queue* stream) { refuse_in_capture(stream, "upload"); }

SLUICE_BODY void Graphs::launch(NativeGraphExec executable, Queue* stream) {
    refuse_in_capture(stream, "launch");
    executable->launch(*stream);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_empty(NativeGraph graph, const NativeNode* after,
                                                 std::size_t count) {
    return graph->add(Node{}, after, count);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_copy(NativeGraph graph, const NativeNode* after, std::size_t count,
                                                void* to, const void* from, std::size_t bytes, CopyKind) {
    return graph->add(copy_node(to, from, bytes), after, count);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_fill(NativeGraph graph, const NativeNode* after, std::size_t count,
                                                void* memory, int value, std::size_t bytes) {
    return graph->add(fill_node(memory, static_cast<unsigned char>(value), 1, bytes), after, count);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_host(NativeGraph graph, const NativeNode* after, std::size_t count,
                                                void (*function)(void*), void* data) {
    return graph->add(Node{.kind = NodeKind::host, .function = some(function), .data = data}, after, count);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_task(NativeGraph graph, const NativeNode* after, std::size_t count,
                                                Task task) {
    return graph->add(task_node(std::move(task)), after, count);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_child(NativeGraph graph, const NativeNode* after,
                                                 std::size_t count, NativeGraph child) {
    Node node{.kind = NodeKind::child};
    node.bodies.push_back(child->clone());
    return graph->add(std::move(node), after, count);
}

SLUICE_BODY void Graphs::add_dependency(NativeGraph graph, NativeNode earlier, NativeNode later) {
    graph->add_dependency(earlier, later);
}

SLUICE_BODY void Graphs::set_copy(NativeGraphExec executable, NativeNode node, void* to, const void* from,
                                  std::size_t bytes, CopyKind) {
    executable->change(node, NodeKind::copy, [&](Node& changed) {
        changed.to = to;
        changed.from = from;
        changed.bytes = bytes;
    });
}

SLUICE_BODY void Graphs::set_fill(NativeGraphExec executable, NativeNode node, void* memory, int value,
                                  std::size_t bytes) {
    executable->change(node, NodeKind::fill, [&](Node& changed) {
        changed.to = memory;
        changed.value = static_cast<unsigned char>(value);
        changed.element_bytes = 1;
        changed.bytes = bytes;
    });
}

SLUICE_BODY void Graphs::set_host(NativeGraphExec executable, NativeNode node, void (*function)(void*),
                                  void* data) {
    executable->change(node, NodeKind::host, [&](Node& changed) {
        changed.function = some(function);
        changed.data = data;
    });
}

SLUICE_BODY void Graphs::set_task(NativeGraphExec executable, NativeNode node, Task task) {
    executable->change(node, NodeKind::task, [&](Node& changed) {
        changed.task = detail::make_shared_value<Task>(std::move(task));
    });
}

SLUICE_BODY void Graphs::set_child(NativeGraphExec executable, NativeNode node, NativeGraph child) {
    executable->change(node, NodeKind::child, [&](Node& changed) {
        if (!changed.bodies.front()->same_shape(*child))
            throw Error("set_child: the graph has other nodes or edges than the child that it replaces");
        changed.bodies.front() = child->clone();
    });
}

SLUICE_BODY Graphs::NativeGraph Graphs::capturing_graph(Queue* stream) {
    return capture_of(stream, "capturing_graph")->graph();
}

SLUICE_BODY unsigned long long Graphs::capture_number(Queue* stream) {
    return capture_of(stream, "capture_number")->number();
}

SLUICE_BODY Graphs::NativeCondition Graphs::create_condition(NativeGraph, unsigned* word) {
    return reinterpret_cast<std::uintptr_t>(word);
}

SLUICE_BODY Graphs::NativeNode Graphs::add_condition(NativeGraph graph, const NativeNode* after,
                                                     std::size_t after_count, NativeCondition condition,
                                                     ConditionKind kind, int count, NativeGraph* bodies) {
    return graph->add(condition_node(condition, kind, count, bodies), after, after_count);
}

SLUICE_BODY void Graphs::begin_capture_into(Queue* stream, NativeGraph body, CaptureMode mode) {
    Capture::begin(*stream, mode, body);
}

SLUICE_BODY void Graphs::end_capture_into(Queue* stream) {
    const detail::Shared<Capture> capture = capture_of(stream, "end_capture_into");
    Graph* const body = capture->target();
    if (capture->end(*stream) != nullptr)
        throw Error("end_capture_into: the stream was not captured into a body; end_capture ends that");
    detail::capture_ledger().in_bodies += body->node_count();
}

SLUICE_BODY void Graphs::capture_condition(Queue* stream, NativeCondition condition, ConditionKind kind,
                                           int count, NativeGraph* bodies) {
    const detail::Shared<Capture> capture = capture_of(stream, "capture_condition");
    const int most = kind == ConditionKind::while_nonzero ? 1 : kind == ConditionKind::if_nonzero ? 2 : count;
    if (count < 1 || count > most || condition == 0)
        capture->refuse("capture_condition: a condition with a value, and as many bodies as its kind takes, "
                        "were expected");
    capture->append(*stream, condition_node(condition, kind, count, bodies));
}

} // namespace sluice::host
