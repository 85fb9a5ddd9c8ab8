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
#include <sluice/backend/detail/host/node.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/shared_of.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::host {

template <class Lazy>
bool BasicGraphs<Lazy>::is_capturing(Queue* stream) {
    return stream->capture() != nullptr;
}

template <class Lazy>
void BasicGraphs<Lazy>::begin_capture(Queue* stream, CaptureMode mode) {
    Capture::begin(*stream, mode);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeGraph BasicGraphs<Lazy>::end_capture(Queue* stream) {
    detail::Owned<Graph> graph = capture_of(stream, "end_capture")->end(*stream);
    if (graph == nullptr)
        throw Error("end_capture: the stream was captured into a body; end_capture_into ends that");
    counts().graphs.add();
    return graph.give();
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeGraph BasicGraphs<Lazy>::create_graph() {
    auto* graph = new Graph;
    counts().graphs.add();
    return graph;
}

template <class Lazy>
void BasicGraphs<Lazy>::destroy_graph(NativeGraph graph) noexcept {
    delete graph;
    counts().graphs.remove();
}

template <class Lazy>
std::size_t BasicGraphs<Lazy>::node_count(NativeGraph graph) {
    return graph->node_count();
}

template <class Lazy>
std::size_t BasicGraphs<Lazy>::edge_count(NativeGraph graph) {
    return graph->edge_count();
}

template <class Lazy>
void BasicGraphs<Lazy>::write_dot(NativeGraph graph, const char* path) {
    graph->write_dot(path);
}

template <class Lazy>
std::uint64_t BasicGraphs<Lazy>::signature(NativeGraph graph, const std::vector<const void*>& own) {
    return graph->signature(own);
}

template <class Lazy>
std::vector<const void*> BasicGraphs<Lazy>::device_pointers(NativeGraph graph) {
    std::vector<const void*> pointers;
    graph->visit_memory([&](const void* memory) {
        if (is_device_memory(memory))
            pointers.push_back(memory);
    });
    return pointers;
}

template <class Lazy>
bool BasicGraphs<Lazy>::is_device_memory(const void* pointer) {
    return MemoryMap::instance().contains(pointer);
}

template <class Lazy>
void BasicGraphs<Lazy>::record_external(BasicEvent<Lazy>* event, Queue* stream) {
    capture_of(stream, "record_external")->append(*stream, task_node(event->mark_of_replays()));
    ++detail::capture_ledger().marks;
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeGraphExec BasicGraphs<Lazy>::instantiate(NativeGraph graph) {
    auto* executable = new GraphExec(*graph);
    counts().executables.add();
    return executable;
}

template <class Lazy>
void BasicGraphs<Lazy>::destroy_graph_exec(NativeGraphExec executable) noexcept {
    delete executable;
    counts().executables.remove();
}

template <class Lazy>
bool BasicGraphs<Lazy>::update(NativeGraphExec executable, NativeGraph graph) {
    return executable->update(*graph);
}

template <class Lazy>
void BasicGraphs<Lazy>::upload(NativeGraphExec, Queue* stream) {
    refuse_in_capture(stream, "upload");
}

template <class Lazy>
void BasicGraphs<Lazy>::launch(NativeGraphExec executable, Queue* stream) {
    refuse_in_capture(stream, "launch");
    executable->launch(*stream);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode
BasicGraphs<Lazy>::add_empty(NativeGraph graph, const NativeNode* after, std::size_t count) {
    return graph->add(Node{}, after, count);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode
BasicGraphs<Lazy>::add_copy(NativeGraph graph, const NativeNode* after, std::size_t count, void* to,
                            const void* from, std::size_t bytes, CopyKind) {
    return graph->add(copy_node(to, from, bytes), after, count);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode BasicGraphs<Lazy>::add_fill(NativeGraph graph, const NativeNode* after,
                                                                   std::size_t count, void* memory, int value,
                                                                   std::size_t bytes) {
    return graph->add(fill_node(memory, static_cast<unsigned char>(value), 1, bytes), after, count);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode BasicGraphs<Lazy>::add_host(NativeGraph graph, const NativeNode* after,
                                                                   std::size_t count, void (*function)(void*),
                                                                   void* data) {
    return graph->add(Node{.kind = NodeKind::host, .function = some(function), .data = data}, after, count);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode BasicGraphs<Lazy>::add_task(NativeGraph graph, const NativeNode* after,
                                                                   std::size_t count, Task task) {
    return graph->add(task_node(std::move(task)), after, count);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode BasicGraphs<Lazy>::add_child(NativeGraph graph,
                                                                    const NativeNode* after,
                                                                    std::size_t count, NativeGraph child) {
    Node node{.kind = NodeKind::child};
    node.bodies.push_back(child->clone());
    return graph->add(std::move(node), after, count);
}

template <class Lazy>
void BasicGraphs<Lazy>::add_dependency(NativeGraph graph, NativeNode earlier, NativeNode later) {
    graph->add_dependency(earlier, later);
}

template <class Lazy>
void BasicGraphs<Lazy>::set_copy(NativeGraphExec executable, NativeNode node, void* to, const void* from,
                                 std::size_t bytes, CopyKind) {
    executable->change(node, NodeKind::copy, [&](Node& changed) {
        changed.to = to;
        changed.from = from;
        changed.bytes = bytes;
    });
}

template <class Lazy>
void BasicGraphs<Lazy>::set_fill(NativeGraphExec executable, NativeNode node, void* memory, int value,
                                 std::size_t bytes) {
    executable->change(node, NodeKind::fill, [&](Node& changed) {
        changed.to = memory;
        changed.value = static_cast<unsigned char>(value);
        changed.element_bytes = 1;
        changed.bytes = bytes;
    });
}

template <class Lazy>
void BasicGraphs<Lazy>::set_host(NativeGraphExec executable, NativeNode node, void (*function)(void*),
                                 void* data) {
    executable->change(node, NodeKind::host, [&](Node& changed) {
        changed.function = some(function);
        changed.data = data;
    });
}

template <class Lazy>
void BasicGraphs<Lazy>::set_task(NativeGraphExec executable, NativeNode node, Task task) {
    executable->change(node, NodeKind::task,
                       [&](Node& changed) { changed.task = detail::shared_of<Task>(std::move(task)); });
}

template <class Lazy>
void BasicGraphs<Lazy>::set_child(NativeGraphExec executable, NativeNode node, NativeGraph child) {
    executable->change(node, NodeKind::child, [&](Node& changed) {
        if (!changed.bodies.front()->same_shape(*child))
            throw Error("set_child: the graph has other nodes or edges than the child that it replaces");
        changed.bodies.front() = child->clone();
    });
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeGraph BasicGraphs<Lazy>::capturing_graph(Queue* stream) {
    return capture_of(stream, "capturing_graph")->graph();
}

template <class Lazy>
unsigned long long BasicGraphs<Lazy>::capture_number(Queue* stream) {
    return capture_of(stream, "capture_number")->number();
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeCondition BasicGraphs<Lazy>::create_condition(NativeGraph, unsigned* word) {
    return reinterpret_cast<std::uintptr_t>(word);
}

template <class Lazy>
typename BasicGraphs<Lazy>::NativeNode
BasicGraphs<Lazy>::add_condition(NativeGraph graph, const NativeNode* after, std::size_t after_count,
                                 NativeCondition condition, ConditionKind kind, int count,
                                 NativeGraph* bodies) {
    return graph->add(condition_node(condition, kind, count, bodies), after, after_count);
}

template <class Lazy>
void BasicGraphs<Lazy>::begin_capture_into(Queue* stream, NativeGraph body, CaptureMode mode) {
    Capture::begin(*stream, mode, body);
}

template <class Lazy>
void BasicGraphs<Lazy>::end_capture_into(Queue* stream) {
    const std::shared_ptr<Capture> capture = capture_of(stream, "end_capture_into");
    Graph* const body = capture->target();
    if (capture->end(*stream) != nullptr)
        throw Error("end_capture_into: the stream was not captured into a body; end_capture ends that");
    detail::capture_ledger().in_bodies += body->node_count();
}

template <class Lazy>
typename BasicGraphs<Lazy>::Node BasicGraphs<Lazy>::copy_node(void* to, const void* from, std::size_t bytes) {
    return {.kind = NodeKind::copy, .to = to, .from = from, .bytes = bytes};
}

template <class Lazy>
typename BasicGraphs<Lazy>::Node BasicGraphs<Lazy>::fill_node(void* memory, std::uint32_t value,
                                                              std::size_t element_bytes, std::size_t bytes) {
    return {
        .kind = NodeKind::fill, .to = memory, .bytes = bytes, .value = value, .element_bytes = element_bytes};
}

template <class Lazy>
typename BasicGraphs<Lazy>::Node BasicGraphs<Lazy>::task_node(Task task) {
    return {.kind = NodeKind::task, .task = detail::shared_of<Task>(std::move(task))};
}

template <class Lazy>
typename BasicGraphs<Lazy>::Node BasicGraphs<Lazy>::condition_node(NativeCondition condition,
                                                                   ConditionKind kind, int count,
                                                                   NativeGraph* bodies) {
    Node node{.kind = NodeKind::condition,
              .word = reinterpret_cast<const unsigned*>(static_cast<std::uintptr_t>(condition)),
              .condition = kind};
    for (int body = 0; body < count; ++body) {
        node.bodies.push_back(detail::shared_of<Graph>());
        bodies[body] = node.bodies.back().get();
    }
    return node;
}

template <class Lazy>
auto BasicGraphs<Lazy>::some(void (*function)(void*)) -> void (*)(void*) {
    if (function == nullptr)
        throw Error("a host node needs a function, and was given none");
    return function;
}

template <class Lazy>
bool BasicGraphs<Lazy>::any_capture() noexcept {
    return captures_under_way.load(std::memory_order_relaxed) != 0;
}

template <class Lazy>
auto BasicGraphs<Lazy>::capture_of(Queue* stream, const char* caller) {
    std::shared_ptr<Capture> capture = stream->capture();
    if (capture == nullptr)
        throw Error(std::string(caller) + ": the stream is not being captured");
    return capture;
}

template <class Lazy>
void BasicGraphs<Lazy>::refuse_in_capture(Queue* stream, const char* caller) {
    if (!any_capture()) [[likely]]
        return;
    if (const auto capture = stream->capture(); capture != nullptr)
        capture->refuse(std::string(caller) + ": the stream is being captured");
}

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

template <class Lazy>
template <class Make>
bool BasicGraphs<Lazy>::captured(Queue* stream, Make&& make) {
    const auto capture = stream->capture();
    detail::CaptureLedger& ledger = detail::capture_ledger();
    if (ledger.depth > 0)
        ledger.note(capture != nullptr);
    if (capture == nullptr)
        return false;
    capture->append(*stream, make());
    return true;
}

} // namespace sluice::host
