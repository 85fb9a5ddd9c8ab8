// A host graph: recorded work.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/host/branches.hpp>
#include <sluice/backend/detail/host/graph_node.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

/// Nodes, each added after those that come before it. They stay where they are when others are added.
///
/// Not synchronised. What a running executable uses is never changed.
class Graph {
public:
    Graph& operator=(Graph&&) = delete;

    /// Adds `node`, whose `after` is empty, behind those of `after`. Throws `Error` for nodes of another graph.
    Node* add(Node node, Node* const* after, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            if (after[i] == nullptr || after[i]->graph != this)
                throw Error("add node: a node that it shall come after is not one of the same graph");
            node.after.push_back(after[i]->index);
        }
        return add(std::move(node));
    }

    /// Adds `node`, whose `after` is filled in.
    Node* add(Node node) {
        const detail::List<std::size_t> given(std::move(node.after));
        node.after.reserve(given.size());
        for (const std::size_t index : given)
            insert(node.after, index);
        node.graph = this;
        node.index = nodes_.size();
        nodes_.push_back(detail::make_owned<Node>(std::move(node)));
        return nodes_.back().get();
    }

    /// Puts `later` behind `earlier`. Throws `Error` if they are not of this graph, or `earlier` was added after `later`.
    void add_dependency(const Node* earlier, const Node* later) {
        if (earlier == nullptr || earlier->graph != this || later == nullptr || later->graph != this)
            throw Error("add_dependency: a node is not one of the graph");
        if (earlier->index >= later->index)
            throw Error("add_dependency: a node can only come behind one that was added before it");
        insert(node(later->index).after, earlier->index);
    }

    std::size_t size() const noexcept { return nodes_.size(); }
    Node& node(std::size_t index) { return *nodes_[index]; }
    const Node& node(std::size_t index) const { return *nodes_[index]; }

    /// Nodes, those of child graphs included and those of conditional bodies not.
    std::size_t node_count() const {
        std::size_t count = nodes_.size();
        for (const auto& node : nodes_) {
            if (node->kind == NodeKind::child)
                count += node->bodies.front()->node_count();
        }
        return count;
    }

    /// Edges between its own nodes.
    std::size_t edge_count() const {
        std::size_t count = 0;
        for (const auto& node : nodes_)
            count += node->after.size();
        return count;
    }

    /// A copy that shares the callables and the memory, and nothing else.
    detail::Shared<Graph> clone() const {
        auto copy = detail::make_shared_value<Graph>();
        copy->nodes_.reserve(nodes_.size());
        for (const auto& node : nodes_) {
            Node* const added = copy->add(*node);
            for (auto& body : added->bodies)
                body = body->clone();
        }
        copy->memory_ = memory_;
        return copy;
    }

    /// Whether `other` has as many nodes, of the same kinds and in the same order, bodies and children included.
    bool same_shape(const Graph& other) const {
        if (size() != other.size())
            return false;
        for (std::size_t i = 0; i < size(); ++i) {
            const Node& mine = node(i);
            const Node& theirs = other.node(i);
            if (mine.kind != theirs.kind || mine.after != theirs.after ||
                mine.condition != theirs.condition || mine.bodies.size() != theirs.bodies.size())
                return false;
            for (std::size_t body = 0; body < mine.bodies.size(); ++body) {
                if (!mine.bodies[body]->same_shape(*theirs.bodies[body]))
                    return false;
            }
        }
        return true;
    }

    /// Whether each node of `these` is among `reached` or comes before one of them.
    bool all_before(const detail::List<std::size_t>& these, const detail::List<std::size_t>& reached) const {
        detail::List<char> before(size(), 0);
        detail::List<std::size_t> open = reached;
        while (!open.empty()) {
            const std::size_t index = open.back();
            open.pop_back();
            if (before[index] != 0)
                continue;
            before[index] = 1;
            for (const std::size_t earlier : node(index).after)
                open.push_back(earlier);
        }
        for (const std::size_t index : these) {
            if (before[index] == 0)
                return false;
        }
        return true;
    }

    /// Looks which nodes can run at the same time, here and in bodies and children. Before the first run, and again when
    /// a node has been changed. Returns how many threads beside the caller's a run takes at most.
    std::size_t prepare() {
        std::size_t threads = 0;
        branches_.reset();
        detail::List<detail::List<std::size_t>> after;
        after.reserve(nodes_.size());
        for (const auto& node : nodes_) {
            for (const auto& body : node->bodies)
                threads += body->prepare();
            after.push_back(node->after);
        }
        auto branches = detail::make_owned<Branches>(std::move(after));
        if (branches->count() < 2)
            return threads;
        branches_ = std::move(branches);
        return threads + branches_->count() - 1;
    }

    /// Runs the nodes: branches that do not depend on each other at the same time, the first one on the calling thread and each
    /// further one on another; a graph without branches in the order in which the nodes were added. Throws what a node throws
    /// first; the nodes that depend on that one do not run. The threads count as running a task of `queue`. One run at a time.
    void run(const Queue& queue) const {
        if (branches_ != nullptr &&
            branches_->run(queue, [&](std::size_t node) { run(*nodes_[node], queue); }))
            return;
        for (const auto& node : nodes_)
            run(*node, queue);
    }

    /// Of the nodes' kinds, order and parameters; of callables, their types, and the values that they have captured, where they
    /// are integers and pointers without padding between them; of the addresses in `own`, which one; of addresses in memory that
    /// was freed where it was allocated, in the capture, where in which block, as another capture of the same work has others.
    std::uint64_t signature(const std::vector<const void*>& own) const {
        detail::List<KeptMemory> inner;
        append_inner_memory(inner);
        return signature(own, inner);
    }

    /// Calls `visit(const void*)` for the memory that copies and fills name, bodies and children included.
    template <class Visit>
    void visit_memory(Visit&& visit) const {
        for (const auto& node : nodes_) {
            if (node->to != nullptr)
                visit(static_cast<const void*>(node->to));
            if (node->from != nullptr)
                visit(node->from);
            for (const auto& body : node->bodies)
                body->visit_memory(visit);
        }
    }

    /// Keeps memory that was allocated in the capture, by `owner`, as long as this graph, or a copy of it, lives.
    void keep(detail::Shared<void> owner, const void* memory, std::size_t bytes) {
        memory_.push_back({std::move(owner), reinterpret_cast<std::uintptr_t>(memory), bytes, false});
    }
    /// What it keeps at `memory` was freed in the capture: no one else knows the address.
    void note_free(const void* memory) noexcept {
        for (KeptMemory& kept : memory_) {
            if (kept.begin == reinterpret_cast<std::uintptr_t>(memory))
                kept.is_inner = true;
        }
    }

    /// Writes a picture of it in Graphviz' DOT language. Throws `Error`.
    void write_dot(const char* path) const {
        const auto fail = [&](int reason) {
            throw Error(std::string("write_dot: cannot write '") + path + "': " + std::strerror(reason));
        };
        std::FILE* const file = std::fopen(path, "w");
        if (file == nullptr)
            fail(errno);
        std::fputs("digraph sluice {\n", file);
        write_nodes(file, "n");
        std::fputs("}\n", file);
        const bool written = std::fflush(file) == 0 && std::ferror(file) == 0;
        const int reason = errno;
        if (std::fclose(file) != 0 && written)
            fail(errno);
        if (!written)
            fail(reason);
    }

private:
    // Memory that was allocated in the capture.
    struct KeptMemory {
        detail::Shared<void> owner;
        std::uintptr_t begin;
        std::size_t bytes;
        bool is_inner; // freed there as well
    };

    // Of this graph, its bodies and its children.
    void append_inner_memory(detail::List<KeptMemory>& inner) const {
        for (const KeptMemory& kept : memory_) {
            if (kept.is_inner)
                inner.push_back(kept);
        }
        for (const auto& node : nodes_) {
            for (const auto& body : node->bodies)
                body->append_inner_memory(inner);
        }
    }
    std::uint64_t signature(const std::vector<const void*>& own,
                            const detail::List<KeptMemory>& inner) const {
        std::uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
        const auto mix = [&hash](const auto& part) {
            unsigned char bytes[sizeof(part)];
            std::memcpy(bytes, &part, sizeof(part));
            for (const unsigned char byte : bytes)
                hash = (hash ^ byte) * 0x100000001b3U;
        };
        const auto mix_address = [&](const void* address) {
            for (std::size_t place = 0; place < own.size(); ++place) {
                if (own[place] == address && address != nullptr) {
                    mix(place);
                    return;
                }
            }
            const auto place_of = reinterpret_cast<std::uintptr_t>(address);
            for (std::size_t place = 0; place < inner.size(); ++place) {
                const KeptMemory& kept = inner[place];
                if (place_of - kept.begin < (kept.bytes == 0 ? 1 : kept.bytes)) {
                    mix(own.size() + place);
                    mix(place_of - kept.begin);
                    return;
                }
            }
            mix(address);
        };
        // Any word of it may be one of these addresses.
        const auto mix_value = [&](const Task& task) {
            std::uintptr_t word = 0;
            std::size_t filled = 0;
            task.visit_value([&](std::byte byte) {
                word |= static_cast<std::uintptr_t>(byte) << 8 * filled;
                if (++filled == sizeof(word)) {
                    mix_address(reinterpret_cast<const void*>(word));
                    word = 0;
                    filled = 0;
                }
            });
            mix(word);
        };
        mix(size());
        for (const auto& node : nodes_) {
            mix(node->kind);
            mix(node->after.size());
            for (const std::size_t index : node->after)
                mix(index);
            mix(node->task == nullptr ? nullptr : node->task->type());
            if (node->task != nullptr)
                mix_value(*node->task);
            mix_address(node->to);
            mix_address(node->from);
            mix(node->bytes);
            mix(node->value);
            mix(node->element_bytes);
            mix(node->function);
            mix(node->data);
            mix(node->word);
            mix(node->condition);
            for (const auto& body : node->bodies)
                mix(body->signature(own, inner));
        }
        return hash;
    }

    // Keeps `after` ascending, each once.
    static void insert(detail::List<std::size_t>& after, std::size_t index) {
        auto place = after.end();
        while (place != after.begin() && *(place - 1) >= index)
            --place;
        if (place == after.end() || *place != index)
            after.insert(place, index);
    }
    static void run(const Node& node, const Queue& queue) {
        switch (node.kind) {
        case NodeKind::empty:
            return;
        case NodeKind::task:
            (*node.task)();
            return;
        case NodeKind::copy:
            std::memcpy(node.to, node.from, node.bytes);
            return;
        case NodeKind::fill:
            fill_memory(node.to, node.value, node.element_bytes, node.bytes);
            return;
        case NodeKind::host:
            node.function(node.data);
            return;
        case NodeKind::child:
            node.bodies.front()->run(queue);
            return;
        case NodeKind::condition:
            break;
        }
        std::size_t chosen = 0;
        switch (node.condition) {
        case ConditionKind::while_nonzero:
            while (*node.word != 0)
                node.bodies.front()->run(queue);
            return;
        case ConditionKind::if_nonzero:
            chosen = *node.word != 0 ? 0 : 1;
            break;
        case ConditionKind::select:
            chosen = *node.word;
            break;
        }
        if (chosen < node.bodies.size())
            node.bodies[chosen]->run(queue);
    }
    void write_nodes(std::FILE* file, const std::string& prefix) const {
        for (const auto& node : nodes_) {
            const std::string name = prefix + std::to_string(node->index);
            std::fprintf(file, "%s [label=\"%zu: %s\"];\n", name.c_str(), node->index, name_of(node->kind));
            for (const std::size_t before : node->after)
                std::fprintf(file, "%s%zu -> %s;\n", prefix.c_str(), before, name.c_str());
            for (std::size_t body = 0; body < node->bodies.size(); ++body) {
                const std::string inner = name + "_" + std::to_string(body);
                std::fprintf(file, "subgraph cluster_%s {\nlabel=\"%s %s, body %zu\";\n", inner.c_str(),
                             name_of(node->kind), name.c_str(), body);
                node->bodies[body]->write_nodes(file, inner + "_");
                std::fputs("}\n", file);
            }
        }
    }

    detail::List<detail::Owned<Node>> nodes_;
    detail::List<KeptMemory> memory_;
    detail::Owned<Branches> branches_; // null where there is one alone
};

} // namespace sluice::host
