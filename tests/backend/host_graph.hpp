// Owners of the Host backend's native graphs.
#pragma once

#include <memory>
#include <utility>

#include <sluice/backend/stream.hpp>

namespace sluice::test {

struct DestroyGraph {
    void operator()(host::Graph* graph) const noexcept { Host::destroy_graph(graph); }
};
struct DestroyExecutable {
    void operator()(host::GraphExec* executable) const noexcept { Host::destroy_graph_exec(executable); }
};
using OwnedGraph = std::unique_ptr<host::Graph, DestroyGraph>;
using OwnedExecutable = std::unique_ptr<host::GraphExec, DestroyExecutable>;

/// What `work()` gives to `stream`.
template <class F>
OwnedGraph captured(const HostStream& stream, F&& work, CaptureMode mode = CaptureMode::this_thread) {
    Host::begin_capture(stream.get(), mode);
    work();
    return OwnedGraph(Host::end_capture(stream.get()));
}

inline OwnedExecutable instantiated(const OwnedGraph& graph) {
    return OwnedExecutable(Host::instantiate(graph.get()));
}

inline void launch(const OwnedExecutable& executable, const HostStream& stream) {
    Host::launch(executable.get(), stream.get());
}

} // namespace sluice::test
