// What replays a host graph.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <sluice/backend/detail/host/branches.hpp>
#include <sluice/backend/detail/host/graph.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/detail/host/workers.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/detail/thread.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::host {

/// A graph made ready to run. Launches run in the order in which they are made, one after another, whatever the
/// queues. It may be destroyed and updated while launches are in flight: they keep what they were made with.
///
/// Any thread may use it.
class GraphExec {
public:
    explicit GraphExec(const Graph& graph)
        : origin_(&graph), graph_(prepared(graph)), turns_(detail::make_shared_value<Turns>()) {}

    /// Enqueues one run of all nodes: branches that do not depend on each other run at the same time, and the queue goes
    /// on when all are over. What a node throws fails `queue`, and keeps from running what depends on it.
    void launch(Queue& queue) {
        // A number and its place in a queue are taken together, so that no launch waits for one that stands behind it.
        std::unique_lock lock(mutex_);
        Task task{[graph = graph_, turns = turns_, number = launched_++, &queue] {
            const Turn turn(*turns, number);
            if (queue.failure() == nullptr)
                graph->run(queue);
        }};
        // Such a queue runs it right here, and a node may use this executable.
        if (queue.runs_on_caller())
            lock.unlock();
        // Also on a failed queue, launches elsewhere wait for this one.
        queue.push(std::move(task), Queue::Policy::run_always);
    }

    /// Makes later launches do what `graph` says; false, and nothing changes, where its shape is another.
    bool update(const Graph& graph) {
        detail::Shared<const Graph> next = prepared(graph);
        const std::lock_guard lock(mutex_);
        if (!graph_->same_shape(*next))
            return false;
        std::swap(graph_, next);
        return true;
    }

    /// Makes later launches use the node as `change(Node&)` leaves it. `node` is one of the graph that the
    /// executable was made from, and of the kind `kind`; throws `Error` otherwise.
    template <class Change>
    void change(const Node* node, NodeKind kind, Change&& change) {
        detail::Shared<const Graph> former; // outlives the lock: its callables' destructors are not ours
        const std::lock_guard lock(mutex_);
        if (node == nullptr || node->graph != origin_ || node->index >= graph_->size())
            throw Error("set node: the node is not one of the graph that the executable was made from");
        if (graph_->node(node->index).kind != kind) {
            throw Error(std::string("set node: the node is of the kind ") +
                        name_of(graph_->node(node->index).kind) + ", and " + name_of(kind) + " was expected");
        }
        detail::Shared<Graph> next = graph_->clone();
        change(next->node(node->index));
        (void)next->prepare();
        former = std::move(graph_);
        graph_ = std::move(next);
    }

private:
    static detail::Shared<Graph> prepared(const Graph& graph) {
        detail::Shared<Graph> copy = graph.clone();
        // More are made when they are needed.
        const std::size_t threads = copy->prepare();
        constexpr std::size_t limit = Branches::limit;
        Workers::instance().prepare(threads < limit ? threads : limit);
        return copy;
    }

    // Shared with the launches in flight.
    struct Turns {
        std::mutex mutex;
        detail::Condition changed;
        std::size_t finished = 0;
    };
    // From the moment that all earlier launches are done, to this one's end.
    class Turn {
    public:
        Turn(Turns& turns, std::size_t number) : turns_(turns) {
            std::unique_lock lock(turns_.mutex);
            turns_.changed.wait(lock, [&] { return turns_.finished == number; });
        }
        Turn& operator=(Turn&&) = delete;
        ~Turn() {
            {
                const std::lock_guard lock(turns_.mutex);
                ++turns_.finished;
            }
            turns_.changed.notify_all();
        }

    private:
        Turns& turns_;
    };

    const Graph* origin_; // only compared with: it may be gone
    std::mutex mutex_;
    detail::Shared<const Graph> graph_;
    detail::Shared<Turns> turns_;
    std::size_t launched_ = 0;
};

} // namespace sluice::host
