/// \file
/// What a backend needs for graphs.
#pragma once

#include <concepts>
#include <cstddef>

#include <sluice/backend/concept.hpp>
#include <sluice/backend/kernel_dims.hpp>

namespace sluice {

/// A backend that records work as graphs and replays it. Like `Backend`, static functions over native handles:
///
/// | functions | what they do |
/// | --- | --- |
/// | `begin_capture`, `end_capture`, `is_capturing`, `is_default_stream` | record what a stream is handed instead of running it; ending throws why the recording is of no use, and it is over either way |
/// | `create_graph`, `destroy_graph`, `node_count`, `edge_count`, `write_dot`, `signature` | a graph, and what is in it; counted are the nodes of child graphs too |
/// | `instantiate`, `destroy_graph_exec`, `update`, `upload`, `launch` | what runs; launches of one executable never overlap, destroying waits for nothing, and `update` says false, and changes nothing, where the graphs differ too much |
/// | `add_empty`, `add_copy`, `add_fill`, `add_host`, `add_child`, `add_condition` and `set_…` | nodes by hand, after the given ones |
/// | `add_dependency` | puts a node behind one that was added earlier |
/// | `capturing_graph`, `create_condition`, `capture_condition`, `begin_capture_into`, `end_capture_into`, `require_conditions` | conditional nodes in the midst of a capture |
/// | `capture_number` | tells two captures into graphs at the same address apart |
/// | `device_pointers`, `is_device_memory` | the memory that a graph's nodes name, as far as it can be seen |
/// | `DefaultStreamWatch(attempts)` | tells whether the default stream was used between its making and `used()`; `attempts` were made before |
///
/// All but the destroying functions throw `Error`.
template <class B>
concept GraphBackend = Backend<B> && requires(typename B::NativeStream stream, typename B::NativeGraph graph,
                                              typename B::NativeGraphExec executable, const char* path) {
    {B::begin_capture(stream, CaptureMode::this_thread)};
    { B::end_capture(stream) } -> std::same_as<typename B::NativeGraph>;
    { B::is_capturing(stream) } -> std::same_as<bool>;
    { B::is_default_stream(stream) } -> std::same_as<bool>;
    { B::create_graph() } -> std::same_as<typename B::NativeGraph>;
    { B::destroy_graph(graph) }
    noexcept;
    { B::node_count(graph) } -> std::same_as<std::size_t>;
    { B::edge_count(graph) } -> std::same_as<std::size_t>;
    {B::write_dot(graph, path)};
    { B::instantiate(graph) } -> std::same_as<typename B::NativeGraphExec>;
    { B::destroy_graph_exec(executable) }
    noexcept;
    { B::update(executable, graph) } -> std::same_as<bool>;
    {B::upload(executable, stream)};
    {B::launch(executable, stream)};
};

/// A backend whose graphs note when they get somewhere. `record_external(event, stream)`, while `stream` is being captured,
/// adds a node that records the event whenever the graph runs. The event then tells of the graph's latest run, as if it had
/// been recorded by its launch. Throws `Error`, also where the stream is not being captured.
template <class B>
concept EventNodeBackend = GraphBackend<B> &&
    requires(typename B::NativeEvent event, typename B::NativeStream stream) {
    {B::record_external(event, stream)};
};

/// A backend whose graphs launch kernels. `add_kernel` adds a node that launches `function` after the given nodes, and
/// `set_kernel` changes its later launches. `arguments` points to one pointer for each of the kernel's parameters; what
/// they point to is copied. `early` says for each of `after` whether the node may begin while that one ends; null: none.
/// `launch_kernel` launches in the order of a stream. All throw `Error`.
template <class B>
concept KernelGraphBackend = GraphBackend<B> &&
    requires(typename B::NativeGraph graph, typename B::NativeGraphExec executable,
             typename B::NativeNode node, const typename B::NativeNode* after, std::size_t count,
             const KernelDims& dims, void* function, void** arguments, const bool* early,
             typename B::NativeStream stream) {
    {
        B::add_kernel(graph, after, count, dims, function, arguments, early)
        } -> std::same_as<typename B::NativeNode>;
    {B::set_kernel(executable, node, dims, function, arguments)};
    {B::launch_kernel(stream, dims, function, arguments, true)};
};

} // namespace sluice
