/// \file
/// One piece of work in a host graph.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

class Graph;

/// What a node of a graph does.
enum class NodeKind { empty, task, copy, fill, host, child, condition };

inline const char* name_of(NodeKind kind) noexcept {
    constexpr const char* names[] = {"empty", "task", "copy", "fill", "host", "child", "condition"};
    return names[static_cast<int>(kind)];
}

/// One piece of work in a graph, with the members that its kind uses. A callable is shared by the copies of a
/// node and run any number of times: what it changes in itself, the next run finds.
struct Node {
    NodeKind kind = NodeKind::empty;
    const Graph* graph = nullptr;     // the one that it was added to
    std::size_t index = 0;            // its place there
    std::vector<std::size_t> after{}; // the nodes before it, ascending and each once

    std::shared_ptr<Task> task{};
    void* to = nullptr; // of copies and fills
    const void* from = nullptr;
    std::size_t bytes = 0;
    int value = 0;
    void (*function)(void*) = nullptr;
    void* data = nullptr;
    const unsigned* word = nullptr; // a condition's value
    ConditionKind condition = ConditionKind::if_nonzero;
    std::vector<std::shared_ptr<Graph>> bodies{}; // a condition's, or the child
};

} // namespace sluice::host
