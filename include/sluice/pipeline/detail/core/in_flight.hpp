// How far a pipeline may be ahead of its stages.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// Marks behind every so many batches, and how many batches are known to be through all stages.
///
/// A mark is an event on each stream of each stage that no other stage reads: all other work on its batches comes before that. The CPU
/// threads' stages have their semaphores. The device is asked when the bound is met, and, where marks are few, behind a batch with a mark:
/// so a caller whose stages keep up is never held up by a question before a batch.
template <Backend B>
class InFlight {
    using Core = StageCore<B>;

public:
    /// At most `asked` batches, or as many as is good where that is 0.
    InFlight(const Core& core, int asked) {
        limit_ = asked == 0 ? by_default : static_cast<std::size_t>(asked);
        // Marks cost time, and few batches that are under way need to be known one by one. Who asks for no bound counts least.
        stride_ = asked == 0 ? limit_ / 2 : limit_ < exact ? 1 : limit_ / 4;
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            bool is_read = false;
            for (std::size_t reader = 0; reader < core.stages(); ++reader)
                is_read = is_read || core.plan.reads_output(reader, stage);
            // Where some stages run less often, what they read may be behind nothing of theirs.
            if (is_read && !core.rates.any())
                continue;
            if (core.plan.stages[stage].aside)
                threads_.push_back(stage);
            for (std::size_t lane = 0; !core.plan.stages[stage].aside && lane < core.lanes(stage); ++lane) {
                lane_stages_.push_back(stage);
                lanes_.push_back(lane);
            }
        }
        // Where all work ends on one stream, the event of a lane on its device serves.
        while (one_ < lanes_.size() &&
               core.streams.device_of(lane_stages_[one_]) != core.streams.device_of(0))
            ++one_;
        width_ = one_ < lanes_.size() ? lanes_.size() : one_ + 1;
        ends_.assign(limit_ / stride_ + 1, 0);
        ends_on_one_.assign(ends_.size(), 0);
        events_.reserve(ends_.size() * width_);
        for (std::size_t i = 0; i < ends_.size() * width_; ++i) {
            const std::size_t lane = i % width_;
            const DeviceGuard<B> device(
                core.streams.device_of(lane < lanes_.size() ? lane_stages_[lane] : 0));
            events_.emplace_back();
        }
    }

    /// So many may be under way.
    std::size_t limit() const noexcept { return limit_; }
    /// The batches known to be through all stages, from the first one on.
    std::size_t completed() const noexcept { return completed_; }
    /// Whether there is a mark that was not seen to be reached.
    bool any() const noexcept { return count_ != 0; }
    /// Whether there is a mark for several batches.
    bool is_sparse() const noexcept { return stride_ > 1; }
    /// Batches before this one have a mark behind them.
    std::size_t marked() const noexcept { return marked_; }
    /// After so many batches the next mark is due.
    std::size_t due() const noexcept { return marked_ + stride_; }

    /// Sets a mark behind the work on all batches before `end`. False where the last one says so already, or none is left.
    bool mark(const Core& core, const Executor<B>& executor, std::size_t end) {
        if (end <= marked_ || count_ == ends_.size())
            return false;
        const std::size_t mark = (first_ + count_) % ends_.size();
        const auto* const one = executor.one_end();
        ends_[mark] = end;
        ends_on_one_[mark] = one != nullptr ? 1 : 0;
        BasicEvent<B>* const events = &events_[mark * width_];
        if (one != nullptr)
            events[one_].record(*one);
        for (std::size_t i = 0; one == nullptr && i < lanes_.size(); ++i)
            events[i].record(core.streams.of(lane_stages_[i], lanes_[i]));
        marked_ = end;
        ++count_;
        return true;
    }

    /// Looks for marks that the stages are behind.
    void look(Core& core) {
        while (reach_oldest(core, false)) {
        }
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
    bool await_oldest(Core& core) { return reach_oldest(core, true); }

    /// All batches before `number` are through all stages.
    void at_rest(std::size_t number) noexcept {
        first_ = count_ = 0;
        completed_ = marked_ = number;
    }

private:
    // Some tens of batches: a pause of the calling thread is not felt, and what is submitted is not old when its turn comes.
    static constexpr std::size_t by_default = 128;
    static constexpr std::size_t exact = 64;

    // Whether there is an oldest mark, and all are behind it, for which it may wait.
    bool reach_oldest(Core& core, bool waits) {
        if (count_ == 0)
            return false;
        const BasicEvent<B>* const events = &events_[first_ * width_];
        const bool on_one = ends_on_one_[first_] != 0;
        for (std::size_t i = on_one ? one_ : 0; i < (on_one ? one_ + 1 : lanes_.size()); ++i) {
            // A look takes less time than a wait, and where batches come at a pace of their own it is all.
            if (events[i].is_done())
                continue;
            if (!waits)
                return false;
            events[i].sync();
        }
        const std::size_t end = ends_[first_];
        for (const std::size_t stage : threads_) {
            // A slot's semaphore counts its laps, so that the last run in each slot tells of all.
            const std::size_t laps = core.order->slots() * core.rates.batches_a_run(stage);
            for (std::size_t batch = end < completed_ + laps ? completed_ : end - laps; batch < end;
                 ++batch) {
                if (!core.rates.runs(stage, batch))
                    continue;
                if (waits)
                    core.await_mark(stage, batch);
                else if (!core.order->reached(stage, batch))
                    return false;
            }
        }
        completed_ = end;
        first_ = (first_ + 1) % ends_.size();
        --count_;
        return true;
    }

    std::size_t limit_ = 0;
    std::size_t stride_ = 1;
    // Of the stages that no other stage reads: their streams, and those on threads.
    List<std::size_t> lane_stages_, lanes_, threads_;
    std::size_t one_ = 0;   // The event for where all work ends on one stream,
    std::size_t width_ = 0; // of so many a mark.
    List<BasicEvent<B>> events_;
    List<std::size_t> ends_;        // The marks, a ring: each is behind all batches before this one,
    List<std::size_t> ends_on_one_; // and whether on one stream.
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    std::size_t completed_ = 0;
    std::size_t marked_ = 0;
};

} // namespace sluice::detail
