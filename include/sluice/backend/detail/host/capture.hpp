// The capture of a host stream: what it has recorded, and which streams belong to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <pthread.h>

#include <sluice/backend/detail/host/graph.hpp>
#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/shared.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

/// Takes what queues are handed, from `begin` to `end`, and appends it to a graph. A queue that waits for an
/// event of the capture joins it, and must be joined back before the end.
///
/// What cannot be captured invalidates it: the call throws `Error`, so does every later one, and `end` says why.
/// Any thread may use it.
class Capture {
    struct Private {};

public:
    Capture(Private, Queue& origin, CaptureMode mode, Graph* body)
        : origin_(&origin), mode_(mode), thread_(pthread_self()),
          own_(body == nullptr ? detail::make_owned<Graph>() : nullptr),
          graph_(body == nullptr ? own_.get() : body) {
        branches_.push_back(Branch{&origin, {}});
    }

    /// Begins a capture of `queue`, into `body` if there is one and otherwise into a graph of its own. Throws `Error`.
    static void begin(Queue& queue, CaptureMode mode, Graph* body = nullptr) {
        if (queue.capture() != nullptr)
            throw Error("begin_capture: the stream is being captured already");
        const auto capture = detail::make_shared_value<Capture>(Private{}, queue, mode, body);
        capture->self_ = capture;
        List& list = List::all();
        const std::lock_guard lock(list.mutex);
        list.captures.push_back(capture.get());
        capture->number_ = ++list.begun;
        captures_under_way.fetch_add(1, std::memory_order_relaxed);
        queue.set_capture(capture);
    }

    /// Ends the capture that `queue` began, and gives its graph; null if it was captured into a body. Throws `Error` if the graph
    /// is of no use; the capture is over then too, unless `queue` or the thread is not the one that began it.
    detail::Owned<Graph> end(Queue& queue) {
        if (&queue != origin_)
            refuse("end_capture: the stream joined the capture; the stream that it began on must end it");
        if (mode_ != CaptureMode::relaxed && pthread_equal(thread_, pthread_self()) == 0)
            refuse("end_capture: the thread that began the capture must end it");
        const auto self = self_.lock(); // the queues hold it no longer
        close();
        // A capture that is over does not change any more. The graph goes with whatever is thrown, even where events still hold the
        // capture.
        detail::Owned<Graph> graph = std::move(own_);
        if (!invalid_.empty())
            throw Error("the capture is invalid: " + invalid_);
        for (const Branch& branch : branches_) {
            if (!graph_->all_before(branch.last, branches_.front().last)) {
                throw Error("the capture has a fork that was not joined: work of another stream comes after "
                            "the last wait of the stream that the capture began on");
            }
        }
        return graph;
    }

    /// Appends `node` behind what `queue` has been handed so far. Throws `Error`.
    Node* append(Queue& queue, Node node) {
        const std::lock_guard lock(mutex_);
        check();
        Branch& branch = branch_of(queue);
        node.after = branch.last;
        Node* const added = graph_->add(std::move(node));
        branch.last.assign(1, added->index);
        return added;
    }

    /// The last nodes of what `queue` has been handed so far. Throws `Error`.
    detail::List<std::size_t> last_of(Queue& queue) {
        const std::lock_guard lock(mutex_);
        check();
        return branch_of(queue).last;
    }

    /// Puts later work of `queue` behind `nodes`, and makes the queue part of the capture. Throws `Error`.
    void join(Queue& queue, const detail::List<std::size_t>& nodes) {
        const std::lock_guard lock(mutex_);
        if (over_) {
            throw Error("wait: the event was last recorded in a capture that is over, and is no point in a "
                        "stream; record it again first");
        }
        check();
        Branch* branch = find(queue);
        if (branch == nullptr) {
            branches_.push_back(Branch{&queue, {}});
            branch = &branches_.back();
            queue.set_capture(self_.lock());
        }
        for (const std::size_t node : nodes)
            detail::add_once(branch->last, node);
    }

    /// The graph that the capture fills. Throws `Error`.
    Graph* graph() {
        const std::lock_guard lock(mutex_);
        check();
        return graph_;
    }

    /// Its place among all captures that have begun.
    unsigned long long number() const noexcept { return number_; }

    /// The same, also when the capture is invalid or over; gone by then if it was the capture's own.
    Graph* target() const noexcept { return graph_; }

    /// Memory, owned by `owner`, that the graph shall keep. Throws `Error`.
    void keep(detail::Shared<void> owner, const void* memory, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        check();
        graph_->keep(std::move(owner), memory, bytes);
    }
    /// Memory of a graph was freed on one of its queues.
    void note_free(const void* memory) noexcept {
        const std::lock_guard lock(mutex_);
        if (!over_)
            graph_->note_free(memory);
    }

    /// `queue` is about to be destroyed.
    void leave(Queue& queue) noexcept {
        if (&queue == origin_) {
            const auto self = self_.lock();
            close();
            own_.reset();
            return;
        }
        const std::lock_guard lock(mutex_);
        if (Branch* const branch = find(queue); branch != nullptr)
            branch->queue = nullptr;
    }

    /// Makes the capture fail with `reason`, unless it has failed already.
    void invalidate(const std::string& reason) {
        const std::lock_guard lock(mutex_);
        if (!over_ && invalid_.empty())
            invalid_ = reason;
    }
    [[noreturn]] void refuse(const std::string& reason) {
        invalidate(reason);
        throw Error(reason);
    }

    /// Invalidates the captures under way that forbid the calling thread what could disturb them; returns whether there is one.
    static bool disturb(const std::string& reason) {
        List& list = List::all();
        const std::lock_guard lock(list.mutex);
        bool forbidden = false;
        for (Capture* const capture : list.captures) {
            if (capture->mode_ == CaptureMode::global ||
                (capture->mode_ == CaptureMode::this_thread &&
                 pthread_equal(capture->thread_, pthread_self()) != 0)) {
                capture->invalidate(reason);
                forbidden = true;
            }
        }
        return forbidden;
    }

private:
    // What one queue has come to.
    struct Branch {
        Queue* queue; // null once it is destroyed
        detail::List<std::size_t> last;
    };
    // The captures under way.
    struct List {
        static List& all() {
            static List list;
            return list;
        }
        std::mutex mutex;
        detail::List<Capture*> captures;
        unsigned long long begun = 0;
    };

    void check() const {
        if (over_)
            throw Error("the capture that this belongs to is over");
        if (!invalid_.empty())
            throw Error("the stream's capture is invalid: " + invalid_);
    }
    Branch* find(const Queue& queue) {
        for (Branch& branch : branches_) {
            if (branch.queue == &queue)
                return &branch;
        }
        return nullptr;
    }
    Branch& branch_of(const Queue& queue) {
        Branch* const branch = find(queue);
        if (branch == nullptr)
            throw Error("the stream does not belong to the capture");
        return *branch;
    }
    // Lets the queues go.
    void close() noexcept {
        {
            List& list = List::all();
            const std::lock_guard lock(list.mutex);
            auto place = list.captures.begin();
            while (place != list.captures.end() && *place != this)
                ++place;
            if (place == list.captures.end())
                return;
            list.captures.erase(place);
        }
        const std::lock_guard lock(mutex_);
        over_ = true;
        for (const Branch& branch : branches_) {
            if (branch.queue != nullptr)
                branch.queue->set_capture(nullptr);
        }
        captures_under_way.fetch_sub(1, std::memory_order_relaxed);
    }

    Queue* const origin_;
    const CaptureMode mode_;
    const pthread_t thread_;
    std::mutex mutex_;
    detail::Owned<Graph> own_;
    Graph* graph_;
    detail::List<Branch> branches_;
    detail::Watched<Capture> self_;
    unsigned long long number_ = 0;
    std::string invalid_; // why; empty while it is not
    bool over_ = false;
};

} // namespace sluice::host
