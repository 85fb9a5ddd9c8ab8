// The ranks of one process, whose streams' threads meet in memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/collective/detail/call.hpp>
#include <sluice/collective/detail/group_failure.hpp>
#include <sluice/collective/detail/host_reduce.hpp>
#include <sluice/collective/detail/host_transport.hpp>

namespace sluice::detail {

/// Ranks come, each on its stream's thread; when all have come, each does a share of the work, reading and writing all
/// ranks' memory; when all have done it, all go on. No rank holds a lock meanwhile, and a rank waits for nothing but the
/// others' coming, so that ranks whose collectives have one order cannot deadlock. Allocates nothing unless it fails.
class HostGroup : public HostTransport {
public:
    HostGroup(int ranks, std::chrono::milliseconds timeout)
        : timeout_(timeout), seats_(static_cast<std::size_t>(ranks)) {}

    void run(int rank, const CollectiveCall& call) override {
        std::unique_lock lock(mutex_);
        take_seat(rank, call);
        await_all(rank, call, lock);
        lock.unlock();
        work(rank, call);
        lock.lock();
        // All have come and none can fail any more: the others are at work, too.
        const std::size_t round = round_;
        if (++finished_ == seats_.size()) {
            arrived_ = 0;
            finished_ = 0;
            ++round_;
            for (Seat& seat : seats_)
                seat.taken = false;
            changed_.notify_all();
        } else {
            changed_.wait(lock, [&] { return round_ != round; });
        }
    }

    void abort(const std::string& reason) noexcept override {
        const std::lock_guard lock(mutex_);
        fail(reason);
    }

    void leave(int rank) noexcept override {
        const std::lock_guard lock(mutex_);
        seats_[static_cast<std::size_t>(rank)].left = true;
        // Those that wait for it would wait in vain. A round that is complete does not need it any more.
        for (std::size_t other = 0; arrived_ < seats_.size() && other < seats_.size(); ++other) {
            if (seats_[other].taken)
                fail_for_left(rank, static_cast<int>(other), seats_[other].call);
        }
    }

    void require_alive(int rank) override {
        const std::lock_guard lock(mutex_);
        throw_if_failed(rank);
    }

private:
    struct Seat {
        CollectiveCall call;
        bool taken = false;
        bool left = false;
    };

    int ranks() const noexcept { return static_cast<int>(seats_.size()); }
    void fail_for_left(int rank, int other, const CollectiveCall& call) {
        fail(left_text(rank, ranks(), other, "the " + call.text()));
    }
    void fail(const std::string& reason) noexcept {
        failure_.set(reason);
        changed_.notify_all();
    }
    void throw_if_failed(int rank) const { failure_.throw_if_set(rank, ranks()); }

    void take_seat(int rank, const CollectiveCall& call) {
        Seat& seat = seats_[static_cast<std::size_t>(rank)];
        if (seat.taken)
            fail(twice_text(rank, ranks()));
        for (std::size_t other = 0; other < seats_.size(); ++other) {
            const Seat& there = seats_[other];
            if (there.left)
                fail_for_left(static_cast<int>(other), rank, call);
            else if (there.taken && !there.call.matches(call)) {
                fail(rank_text(rank, ranks()) + " came to " + call.text() + " and rank " +
                     std::to_string(other) + " to " + there.call.text() +
                     "; all ranks must make the same calls in the same order");
            }
        }
        throw_if_failed(rank);
        seat.call = call;
        seat.taken = true;
        ++arrived_;
    }

    void await_all(int rank, const CollectiveCall& call, std::unique_lock<std::mutex>& lock) {
        if (arrived_ == seats_.size()) {
            ++complete_;
            changed_.notify_all();
            return;
        }
        const std::size_t round = round_;
        const auto come = [&] { return complete_ > round; };
        const auto decided = [&] { return failure_ || come(); };
        if (timeout_.count() == 0)
            changed_.wait(lock, decided);
        else
            (void)changed_.wait_for(lock, timeout_, decided);
        if (come())
            return;
        if (!failure_)
            fail(late_text(rank, call));
        throw_if_failed(rank);
    }
    std::string late_text(int rank, const CollectiveCall& call) const {
        std::string missing;
        for (std::size_t other = 0; other < seats_.size(); ++other) {
            if (!seats_[other].taken)
                missing += (missing.empty() ? "rank " : " and rank ") + std::to_string(other);
        }
        return missing + " did not come to the " + call.text() + " of " + rank_text(rank, ranks()) +
               " within " + std::to_string(timeout_.count()) + " ms";
    }

    const CollectiveCall& call_of(int rank) const noexcept {
        return seats_[static_cast<std::size_t>(rank)].call;
    }

    void work(int rank, const CollectiveCall& call) {
        switch (call.kind) {
        case CollectiveKind::all_reduce:
            return all_reduce(rank, call);
        case CollectiveKind::reduce_scatter:
            return reduce_scatter(rank, call);
        case CollectiveKind::all_gather:
            return all_gather(rank, call);
        case CollectiveKind::broadcast:
            return broadcast(rank, call);
        }
    }
    // Each rank reduces a part of the elements for all of them, so that all get the same bits.
    void all_reduce(int rank, const CollectiveCall& call) {
        const std::size_t ranks = seats_.size();
        const auto place = static_cast<std::size_t>(rank);
        const std::size_t begin = part_begin(call.count, place, ranks);
        const std::size_t end = part_begin(call.count, place + 1, ranks);
        with_element(call.element, [&](auto zero) {
            using T = decltype(zero);
            reduce_range<T>(
                begin, end, this->ranks(), call.reduction,
                [&](int from) { return static_cast<const T*>(call_of(from).in); }, this->ranks(),
                [&](int to) { return static_cast<T*>(call_of(to).out); });
        });
    }
    void reduce_scatter(int rank, const CollectiveCall& call) {
        const std::size_t offset = call.count * static_cast<std::size_t>(rank);
        with_element(call.element, [&](auto zero) {
            using T = decltype(zero);
            reduce_range<T>(
                0, call.count, ranks(), call.reduction,
                [&](int from) { return static_cast<const T*>(call_of(from).in) + offset; }, 1,
                [&](int) { return static_cast<T*>(call.out); });
        });
    }
    void all_gather(int rank, const CollectiveCall& call) {
        const std::size_t bytes = call.count * bytes_of(call.element);
        for (int to = 0; to < ranks(); ++to) {
            char* const receiver =
                static_cast<char*>(call_of(to).out) + bytes * static_cast<std::size_t>(rank);
            if (bytes > 0 && receiver != call.in)
                std::memcpy(receiver, call.in, bytes);
        }
    }
    void broadcast(int rank, const CollectiveCall& call) {
        const std::size_t bytes = call.count * bytes_of(call.element);
        const void* const from = call_of(call.root).in;
        if (bytes > 0 && rank != call.root)
            std::memcpy(call.out, from, bytes);
    }

    std::chrono::milliseconds timeout_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Seat> seats_;
    std::size_t arrived_ = 0;  // ranks that have come to this round
    std::size_t complete_ = 0; // rounds that all ranks have come to
    std::size_t finished_ = 0; // ranks that have done their share of it
    std::size_t round_ = 0;    // rounds that are over
    GroupFailure failure_;
};

} // namespace sluice::detail
