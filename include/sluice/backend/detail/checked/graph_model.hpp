// What graphs read and write, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/shadow.hpp>

namespace sluice::detail::checked {

/// An access of a node's.
struct NodeAccess {
    Range range;
    Doer doer;
    std::uint64_t block = 0; ///< The number of the block that it named, where that is sluice's; otherwise 0.
};

/// An allocation of a capture, whose block the checker forgets with the last graph and executable that have it: other memory may
/// come there. Destroyed while the checker is locked.
class GraphMemory {
public:
    GraphMemory(Blocks& blocks, const Block& block) noexcept
        : blocks_(blocks), begin_(block.begin), number_(block.number) {}
    GraphMemory& operator=(GraphMemory&&) = delete;
    ~GraphMemory() { blocks_.forget(begin_, number_); }

private:
    Blocks& blocks_;
    std::uintptr_t begin_;
    std::uint64_t number_;
};

struct GraphModel;

struct NodeModel {
    Key key = nullptr; ///< The native node; null in a capture.
    std::vector<std::size_t> after;
    std::vector<NodeAccess> accesses;
    std::vector<std::shared_ptr<GraphModel>> bodies; ///< Of a child or a condition.
    Token call = 0;      ///< Of a callable: see `captured_call`. 0: none, or not known.
    Doer caller;         ///< Who has enqueued it.
    bool opaque = false; ///< Whether it may make accesses that are unknown,
    bool unseen = false; ///< also what passes the checker by.
};

/// Nodes, mostly each behind those that it comes after.
struct GraphModel {
    std::vector<NodeModel> nodes;
    std::uint64_t first_batch = 0; ///< What was the first batch when it was captured.
    std::vector<std::shared_ptr<const GraphMemory>> memory{}; ///< That was allocated in the capture.

    std::size_t find(Key key) const noexcept {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            if (nodes[i].key == key)
                return i;
        }
        return nodes.size();
    }
    std::shared_ptr<GraphModel> clone() const {
        auto copy = std::make_shared<GraphModel>(*this);
        for (NodeModel& node : copy->nodes) {
            for (auto& body : node.bodies)
                body = body->clone();
        }
        return copy;
    }
};

/// A capture under way. Its streams point to it.
struct Capturing {
    std::shared_ptr<GraphModel> model;
    Key origin = nullptr;
};

/// What a launch does: the accesses of all nodes, each on a branch, at a time, and after so much of the other branches.
struct Program {
    struct Step {
        std::vector<NodeAccess> accesses;
        Token call = 0;
        Doer caller;
        std::size_t branch = 0;
        Time time = 0;
        std::vector<Time> after; ///< For each branch.
    };
    std::vector<Step> steps;
    std::vector<Time> ends; ///< Of each branch.
    bool opaque = false;
    bool unseen = false;
};

/// Lays a graph out on as few branches as a look at each node in turn finds.
class ProgramMaker {
public:
    static Program make(const GraphModel& model) {
        ProgramMaker maker;
        maker.add(model, {}, 0, true);
        return std::move(maker.program_);
    }

private:
    using Times = std::vector<Time>;

    static void join(Times& to, const Times& from) {
        if (to.size() < from.size())
            to.resize(from.size());
        for (std::size_t i = 0; i < from.size(); ++i) {
            if (to[i] < from[i])
                to[i] = from[i];
        }
    }
    // What is over when all of the graph is. `within`: the node that it is a child or a body of; `once`: whether
    // each launch runs it once.
    Times add(const GraphModel& model, const Times& before, std::uint32_t within, bool once) {
        std::vector<Times> reached(model.nodes.size());
        Times all = before;
        for (const std::size_t index : order_of(model)) {
            const NodeModel& node = model.nodes[index];
            Times& here = reached[index];
            here = before;
            for (const std::size_t earlier : node.after)
                join(here, reached[earlier]);
            program_.opaque = program_.opaque || node.opaque;
            program_.unseen = program_.unseen || node.unseen;
            const std::uint32_t number = within != 0           ? within
                                         : node.key == nullptr ? 0
                                                               : static_cast<std::uint32_t>(index) + 1;
            for (const auto& body : node.bodies)
                join(here, add(*body, here, number, false));
            if (!node.accesses.empty() || (once && node.call != 0))
                step(node, here, number, once);
            join(all, here);
        }
        return all;
    }
    void step(const NodeModel& node, Times& here, std::uint32_t number, bool once) {
        std::size_t branch = 0;
        while (branch < program_.ends.size() &&
               (branch >= here.size() ? Time{0} : here[branch]) < program_.ends[branch])
            ++branch;
        if (branch == program_.ends.size())
            program_.ends.push_back(0);
        const Time time = ++program_.ends[branch];
        program_.steps.push_back({node.accesses, once ? node.call : 0, node.caller, branch, time, here});
        for (NodeAccess& access : program_.steps.back().accesses)
            access.doer.node = number;
        if (here.size() <= branch)
            here.resize(branch + 1);
        here[branch] = time;
    }
    // Nodes behind those that they come after: `add_dependency` may name later ones.
    static std::vector<std::size_t> order_of(const GraphModel& model) {
        const std::size_t count = model.nodes.size();
        std::vector<std::size_t> order;
        std::vector<char> done(count, 0);
        while (order.size() < count) {
            const std::size_t before = order.size();
            for (std::size_t i = 0; i < count; ++i) {
                bool ready = done[i] == 0;
                for (const std::size_t earlier : model.nodes[i].after)
                    ready = ready && done[earlier] != 0;
                if (ready) {
                    done[i] = 1;
                    order.push_back(i);
                }
            }
            if (order.size() == before)
                break; // A circle, which no backend takes.
        }
        return order;
    }

    Program program_;
};

/// An executable.
struct GraphExecModel {
    std::shared_ptr<GraphModel> model;
    Program program;
    Stamp last; ///< The end of its last launch.
    bool launched = false;
};

} // namespace sluice::detail::checked
