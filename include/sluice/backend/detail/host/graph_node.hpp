// What a host graph consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

class Graph;

/// What a node of a graph does.
enum class NodeKind { empty, task, copy, fill, host, child, condition };

inline const char* name_of(NodeKind kind) noexcept {
    constexpr const char* names[] = {"empty", "task", "copy", "fill", "host", "child", "condition"};
    return names[static_cast<int>(kind)];
}

/// Repeats the lowest `element_bytes` (1, 2 or 4) bytes of `value` from `memory` on, `bytes` in all.
inline void fill_memory(void* memory, std::uint32_t value, std::size_t element_bytes, std::size_t bytes) {
    if (element_bytes == 1) {
        std::memset(memory, static_cast<int>(value & 0xffU), bytes);
        return;
    }
    const auto half = static_cast<std::uint16_t>(value);
    const void* const element =
        element_bytes == 2 ? static_cast<const void*>(&half) : static_cast<const void*>(&value);
    // What is there already is copied behind itself.
    std::memcpy(memory, element, element_bytes);
    for (std::size_t done = element_bytes; done < bytes;) {
        const std::size_t next = done < bytes - done ? done : bytes - done;
        std::memcpy(static_cast<char*>(memory) + done, memory, next);
        done += next;
    }
}

/// One piece of work in a graph, with the members that its kind uses. A callable is shared by the copies of a
/// node and run any number of times: what it changes in itself, the next run finds.
struct Node {
    NodeKind kind = NodeKind::empty;
    const Graph* graph = nullptr;      // the one that it was added to
    std::size_t index = 0;             // its place there
    detail::List<std::size_t> after{}; // the nodes before it, ascending and each once

    detail::Shared<Task> task{};
    void* to = nullptr; // of copies and fills
    const void* from = nullptr;
    std::size_t bytes = 0;
    std::uint32_t value = 0;       // of fills
    std::size_t element_bytes = 1; // how many of the value's bytes are repeated
    void (*function)(void*) = nullptr;
    void* data = nullptr;
    const unsigned* word = nullptr; // a condition's value
    ConditionKind condition = ConditionKind::if_nonzero;
    detail::List<detail::Shared<Graph>> bodies{}; // a condition's, or the child
};

} // namespace sluice::host
