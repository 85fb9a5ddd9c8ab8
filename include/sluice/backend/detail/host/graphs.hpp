// The Host backend's graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

class Queue;
class Event;
class Graph;
class GraphExec;
struct Node;

/// The part of `Host` that deals with graphs. See the concept `GraphBackend` for what each function does.
///
/// A launch is one task of its stream. Branches that do not depend on each other run at the same time, the first on the stream's
/// thread and each further one on a thread of the program's; up to 32 of them. Conditions are read when their node is reached.
struct Graphs {
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
    static constexpr bool has_default_stream = false;
    static bool is_default_stream(Queue*) noexcept { return false; }
    static bool is_capturing(Queue* stream);
    static void begin_capture(Queue* stream, CaptureMode mode);
    static NativeGraph end_capture(Queue* stream);

    // Graphs
    // --------------------------------------------------------------------------------------------------
    static NativeGraph create_graph();
    static void destroy_graph(NativeGraph graph) noexcept;
    static std::size_t node_count(NativeGraph graph);
    static std::size_t edge_count(NativeGraph graph);
    static void write_dot(NativeGraph graph, const char* path);
    /// Of the nodes' kinds, order and parameters; of callables their types, not what they hold.
    static std::uint64_t signature(NativeGraph graph, const std::vector<const void*>& own = {});
    /// The device memory that copies and fills name.
    static std::vector<const void*> device_pointers(NativeGraph graph);
    static bool is_device_memory(const void* pointer);

    static void record_external(Event* event, Queue* stream);

    // Executables
    // --------------------------------------------------------------------------------------------------
    static NativeGraphExec instantiate(NativeGraph graph);
    static void destroy_graph_exec(NativeGraphExec executable) noexcept;
    static bool update(NativeGraphExec executable, NativeGraph graph);
    /// Does nothing: there is nowhere to upload to.
    static void upload(NativeGraphExec, Queue* stream);
    static void launch(NativeGraphExec executable, Queue* stream);

    // Nodes by hand
    // --------------------------------------------------------------------------------------------------
    static NativeNode add_empty(NativeGraph graph, const NativeNode* after, std::size_t count);
    static NativeNode add_copy(NativeGraph graph, const NativeNode* after, std::size_t count, void* to,
                               const void* from, std::size_t bytes, CopyKind);
    static NativeNode add_fill(NativeGraph graph, const NativeNode* after, std::size_t count, void* memory,
                               int value, std::size_t bytes);
    static NativeNode add_host(NativeGraph graph, const NativeNode* after, std::size_t count,
                               void (*function)(void*), void* data);
    /// Any callable, as `Host::enqueue` takes them.
    static NativeNode add_task(NativeGraph graph, const NativeNode* after, std::size_t count, Task task);
    static NativeNode add_child(NativeGraph graph, const NativeNode* after, std::size_t count,
                                NativeGraph child);
    /// Puts `later` behind `earlier`, which must have been added before it. Throws `Error`.
    static void add_dependency(NativeGraph graph, NativeNode earlier, NativeNode later);
    static void set_copy(NativeGraphExec executable, NativeNode node, void* to, const void* from,
                         std::size_t bytes, CopyKind);
    static void set_fill(NativeGraphExec executable, NativeNode node, void* memory, int value,
                         std::size_t bytes);
    static void set_host(NativeGraphExec executable, NativeNode node, void (*function)(void*), void* data);
    static void set_task(NativeGraphExec executable, NativeNode node, Task task);
    static void set_child(NativeGraphExec executable, NativeNode node, NativeGraph child);

    // Conditional nodes
    // --------------------------------------------------------------------------------------------------
    static void require_conditions(ConditionKind, int) noexcept {}
    static NativeGraph capturing_graph(Queue* stream);
    /// Tells one capture from another that fills a graph at the same address.
    static unsigned long long capture_number(Queue* stream);
    /// A condition is the address of its value.
    static NativeCondition create_condition(NativeGraph, unsigned* word);
    static NativeNode add_condition(NativeGraph graph, const NativeNode* after, std::size_t after_count,
                                    NativeCondition condition, ConditionKind kind, int count,
                                    NativeGraph* bodies);
    static void capture_condition(Queue* stream, NativeCondition condition, ConditionKind kind, int count,
                                  NativeGraph* bodies);
    static void begin_capture_into(Queue* stream, NativeGraph body, CaptureMode mode);
    static void end_capture_into(Queue* stream);
};

} // namespace sluice::host

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/backend/detail/host/graphs.inl>
#endif
