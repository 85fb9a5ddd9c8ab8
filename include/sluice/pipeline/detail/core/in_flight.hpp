/// \file
/// How far a pipeline may be ahead of its stages.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// Marks behind every so many batches, and how many batches are known to be through all stages.
///
/// A mark is an event on each stream of each stage that nobody reads: all other work on its batches comes before that. The CPU
/// threads' stages have their semaphores. Nothing is asked of the device but when the bound is met.
template <Backend B>
class InFlight {
    using Core = StageCore<B>;

public:
    /// At most `asked` batches, or as many as is good where that is 0. Throws `Error` for a negative number.
    InFlight(const Core& core, int asked) {
        if (asked < 0)
            throw Error("in_flight is at least 1 batch (0: as many as is good), got " +
                        std::to_string(asked));
        limit_ = asked == 0 ? by_default : static_cast<std::size_t>(asked);
        // Marks cost time, and few batches that are under way need to be known one by one.
        stride_ = limit_ < exact ? 1 : limit_ / 4;
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            bool is_read = false;
            for (std::size_t reader = 0; reader < core.stages(); ++reader)
                is_read = is_read || core.plan.reads_output(reader, stage);
            if (!is_read)
                ends_.push_back(stage);
        }
        // Where all work ends on one stream, the event of a lane on its device serves.
        bool found = false;
        for_each_lane(core, [&](std::size_t stage, std::size_t) {
            found = found || core.streams.device_of(stage) == core.streams.device_of(0);
            one_ += found ? 0 : 1;
            ++lanes_;
        });
        marks_.resize(limit_ / stride_ + 1);
        for (Mark& mark : marks_) {
            const auto add = [&](std::size_t stage, std::size_t) {
                const DeviceGuard<B> device(core.streams.device_of(stage));
                mark.events.emplace_back();
            };
            for_each_lane(core, add);
            if (one_ == mark.events.size())
                add(0, 0);
        }
    }

    /// So many may be under way.
    std::size_t limit() const noexcept { return limit_; }
    /// The batches known to be through all stages, from the first one on.
    std::size_t completed() const noexcept { return completed_; }
    /// Whether there is a mark that was not seen to be reached.
    bool any() const noexcept { return count_ != 0; }
    /// After so many batches the next mark is due.
    std::size_t due() const noexcept { return marked_ + stride_; }

    /// Sets a mark behind the work on all batches before `end`. False where the last one says so already, or none is left.
    bool mark(const Core& core, const Executor<B>& executor, std::size_t end) {
        if (end <= marked_ || count_ == marks_.size())
            return false;
        Mark& mark = at(count_);
        mark.end = end;
        mark.one = executor.one_end() != nullptr;
        if (mark.one) {
            mark.events[one_].record(*executor.one_end());
        } else {
            std::size_t next = 0;
            for_each_lane(core, [&](std::size_t stage, std::size_t lane) {
                mark.events[next++].record(core.streams.of(stage, lane));
            });
        }
        marked_ = end;
        ++count_;
        return true;
    }

    /// Looks for marks that the stages are behind.
    void look(Core& core) {
        while (count_ != 0 && is_reached(core, at(0)))
            pop();
    }
    /// The same, up to the first one that tells of a fault.
    void look_quietly(Core& core) noexcept {
        try {
            look(core);
        } catch (...) {
            // It is known by now.
        }
    }
    /// Waits on the calling thread for the oldest mark. False where there is none.
    bool await_oldest(Core& core) {
        if (count_ == 0)
            return false;
        for_each_event(at(0), [](const BasicEvent<B>& event) { event.sync(); });
        for_each_aside(core, at(0),
                       [&](std::size_t stage, std::size_t batch) { core.await_mark(stage, batch); });
        pop();
        return true;
    }

    /// All batches before `number` are through all stages.
    void at_rest(std::size_t number) noexcept {
        first_ = count_ = 0;
        completed_ = marked_ = number;
    }

private:
    // Some tens of batches: a pause of the calling thread is not felt, and what is submitted is not old when its turn comes.
    static constexpr std::size_t by_default = 128;
    static constexpr std::size_t exact = 64;

    struct Mark {
        List<BasicEvent<B>> events; // a lane each, and perhaps one for where all work ends on one stream
        std::size_t end = 0;
        bool one = false;
    };
    Mark& at(std::size_t index) noexcept { return marks_[(first_ + index) % marks_.size()]; }
    void pop() noexcept {
        completed_ = at(0).end;
        first_ = (first_ + 1) % marks_.size();
        --count_;
    }

    template <class Visit>
    void for_each_lane(const Core& core, Visit&& visit) const {
        for (const std::size_t stage : ends_) {
            for (std::size_t lane = 0; !core.plan.stages[stage].aside && lane < core.lanes(stage); ++lane)
                visit(stage, lane);
        }
    }
    template <class Visit>
    void for_each_event(const Mark& mark, Visit&& visit) const {
        for (std::size_t i = mark.one ? one_ : 0; i < (mark.one ? one_ + 1 : lanes_); ++i)
            visit(mark.events[i]);
    }

    bool is_reached(Core& core, const Mark& mark) {
        bool reached = true;
        for_each_event(mark, [&](const BasicEvent<B>& event) { reached = reached && event.is_done(); });
        for_each_aside(core, mark, [&](std::size_t stage, std::size_t batch) {
            reached = reached && core.order->reached(stage, batch);
        });
        return reached;
    }
    // A slot's semaphore counts its laps, so that the last batch of each slot tells of all.
    template <class Visit>
    void for_each_aside(Core& core, const Mark& mark, Visit&& visit) {
        const std::size_t slots = core.order->slots();
        for (const std::size_t stage : ends_) {
            if (!core.plan.stages[stage].aside)
                continue;
            std::size_t batch = mark.end < completed_ + slots ? completed_ : mark.end - slots;
            for (; batch < mark.end; ++batch)
                visit(stage, batch);
        }
    }

    std::size_t limit_ = 0;
    std::size_t stride_ = 1;
    List<std::size_t> ends_; // stages that nobody reads
    std::size_t lanes_ = 0;  // of them
    std::size_t one_ = 0;    // The event for where all work ends on one stream.
    List<Mark> marks_;       // a ring
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::size_t completed_ = 0;
    std::size_t marked_ = 0; // Batches before this one have a mark behind them.
};

} // namespace sluice::detail
