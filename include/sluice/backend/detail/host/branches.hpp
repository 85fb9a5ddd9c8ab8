// How a host graph's independent branches run at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>

#include <sluice/backend/detail/host/queue.hpp>
#include <sluice/backend/detail/host/workers.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/thread.hpp>

namespace sluice::host {

/// A graph's nodes, dealt out to threads. A branch is a list of nodes of which each comes after the one before it, so
/// that no node waits for one that it does not depend on; what a node needs of other branches it waits for.
///
/// Only where a graph has more than `limit` branches do independent nodes share a thread, in the order in which they
/// were added; so there is always a node that can run.
///
/// One run at a time.
class Branches {
public:
    /// Threads that a graph runs on at most.
    static constexpr std::size_t limit = 32;

    /// Deals out the nodes of which `after[i]` are those that node i depends on, all of smaller numbers.
    explicit Branches(detail::List<detail::List<std::size_t>> after)
        : after_(std::move(after)), failed_(after_.size(), 0) {
        // Counts of each branch's steps: those that come before a node, its own included, and those before what a branch
        // has come to.
        using Clock = detail::List<std::size_t>;
        const auto join = [](Clock& clock, const Clock& other) {
            if (clock.size() < other.size())
                clock.resize(other.size());
            for (std::size_t i = 0; i < other.size(); ++i)
                clock[i] = clock[i] < other[i] ? other[i] : clock[i];
        };
        detail::List<Clock> of_node(after_.size());
        detail::List<Clock> of_branch;
        for (std::size_t node = 0; node < after_.size(); ++node) {
            Clock clock;
            for (const std::size_t before : after_[node])
                join(clock, of_node[before]);
            clock.resize(of_branch.size());

            // A branch that this node comes after as a whole; best the one that a node right before it is the last of.
            std::size_t chosen = of_branch.size();
            for (std::size_t b = of_branch.size(); b-- > 0;) {
                if (clock[b] == branches_[b].steps.size())
                    chosen = b;
            }
            for (std::size_t i = after_[node].size(); i-- > 0;) {
                for (std::size_t b = 0; b < of_branch.size(); ++b) {
                    if (branches_[b].steps.back().node == after_[node][i])
                        chosen = b;
                }
            }
            if (chosen == of_branch.size() && chosen < limit) {
                branches_.emplace_back();
                of_branch.emplace_back();
            } else if (chosen == of_branch.size()) {
                chosen = 0;
                for (std::size_t b = 1; b < limit; ++b) {
                    if (branches_[b].steps.size() < branches_[chosen].steps.size())
                        chosen = b;
                }
            }

            Step step{.node = node, .waits = {}};
            Clock& known = of_branch[chosen];
            known.resize(of_branch.size());
            for (std::size_t b = 0; b < clock.size(); ++b) {
                if (b == chosen || clock[b] <= known[b])
                    continue;
                step.waits.push_back({b, clock[b]});
                branches_[b].steps[clock[b] - 1].awaited = true;
            }
            branches_[chosen].steps.push_back(std::move(step));
            join(known, clock);
            known[chosen] = branches_[chosen].steps.size();
            of_node[node] = known;
        }
        for (std::size_t b = 0; b < branches_.size(); ++b) {
            branches_[b].all = this;
            branches_[b].number = b;
            branches_[b].run = [](Workers::Job& job) {
                auto& branch = static_cast<Branch&>(job);
                const Running running(*branch.all->run_.queue);
                branch.all->run_branch(branch);
            };
            branches_[b].finished = [](Workers::Job& job) {
                Branches& all = *static_cast<Branch&>(job).all;
                const std::lock_guard lock(
                    all.mutex_); // nothing is touched after it: the last branch may be awaited
                if (--all.open_ == 0)
                    all.changed_.notify_all();
            };
        }
    }
    Branches& operator=(Branches&&) = delete;

    std::size_t count() const noexcept { return branches_.size(); }

    /// Calls `work(node)` for each node, on the calling thread and on others, and waits for all of them. The nodes that
    /// depend on one that throws are left out; the first exception is thrown at the end. False, and nothing has run,
    /// where threads are missing. All threads count as running a task of `queue`.
    template <class Work>
    bool run(const Queue& queue, const Work& work) {
        run_ = {&queue, &work,
                [](const void* called, std::size_t node) { (*static_cast<const Work*>(called))(node); }};
        for (std::size_t b = 0; b < branches_.size(); ++b) {
            branches_[b].over = 0;
            branches_[b].next = b == 0 || b + 1 == branches_.size() ? nullptr : &branches_[b + 1];
        }
        open_ = branches_.size() - 1;
        if (open_ != 0 && !Workers::instance().start(&branches_[1], open_))
            return false;
        run_branch(branches_[0]);
        std::exception_ptr failure;
        finish(failure);
        if (failure != nullptr)
            std::rethrow_exception(std::move(failure));
        return true;
    }

private:
    struct Wait {
        std::size_t branch;
        std::size_t steps; // so many of its steps must be over
    };
    struct Step {
        std::size_t node;
        detail::List<Wait> waits;
        bool awaited = false; // by another branch
    };
    struct Branch : Workers::Job {
        Branches* all = nullptr;
        std::size_t number = 0;
        detail::List<Step> steps;
        std::size_t over = 0; // of the steps that are awaited, the last
    };
    // What one run is about.
    struct Run {
        const Queue* queue;
        const void* work;
        void (*call)(const void* work, std::size_t node);
    };

    void run_branch(Branch& branch) {
        for (std::size_t i = 0; i < branch.steps.size(); ++i) {
            const Step& step = branch.steps[i];
            if (!step.waits.empty()) {
                std::unique_lock lock(mutex_);
                for (const Wait& wait : step.waits)
                    changed_.wait(lock, [&] { return branches_[wait.branch].over >= wait.steps; });
            }
            if (any_failed_.load(std::memory_order_relaxed) && depends_on_failure(step.node)) {
                failed_[step.node] = 1;
            } else {
                try {
                    run_.call(run_.work, step.node);
                } catch (...) {
                    failed_[step.node] = 1;
                    any_failed_.store(true, std::memory_order_relaxed);
                    const std::lock_guard lock(mutex_);
                    if (failure_ == nullptr)
                        failure_ = std::current_exception();
                }
            }
            if (step.awaited) {
                const std::lock_guard lock(mutex_);
                branch.over = i + 1;
                changed_.notify_all();
            }
        }
    }
    bool depends_on_failure(std::size_t node) const {
        for (const std::size_t before : after_[node]) {
            if (failed_[before] != 0)
                return true;
        }
        return false;
    }
    void finish(std::exception_ptr& failure) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return open_ == 0; });
        if (!any_failed_.load(std::memory_order_relaxed))
            return;
        any_failed_.store(false, std::memory_order_relaxed);
        failed_.assign(failed_.size(), 0);
        failure.swap(failure_);
    }

    detail::List<detail::List<std::size_t>> after_;
    detail::List<Branch> branches_;
    detail::List<char> failed_; // nodes that threw or were left out; each written by its own thread
    std::atomic<bool> any_failed_{false};
    std::mutex mutex_;
    detail::Condition changed_;
    std::size_t open_ = 0; // branches on other threads that are not over
    std::exception_ptr failure_;
    Run run_{};
};

} // namespace sluice::host
