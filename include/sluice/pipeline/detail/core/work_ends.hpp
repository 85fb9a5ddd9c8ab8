// Where work ends, so that a wait for a batch is for no later one.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/core/stage_streams.hpp>

namespace sluice::detail {

template <Backend B>
class StageCore;

/// An event for each of the last ends, by the number of what ends there. The numbers grow.
///
/// Recording costs the host time: so no end is recorded before the first question, and none after `patience` more without one.
template <Backend B>
class RecentEnds {
public:
    static constexpr std::size_t patience = 64;

    struct End {
        std::size_t number = 0;
        BasicEvent<B> event;
    };

    /// Makes the events, on the current device.
    void make() {
        if (ends_.size() == 0)
            ends_ = List<End>(most); // all or none
    }
    void forget() noexcept { count_ = 0; }

    void record(std::size_t number, BasicStreamRef<B> stream) {
        End& end = ends_[count_ % most];
        end.number = number;
        end.event.record(stream);
        ++count_;
    }
    /// The first one known for `number`, or for one that comes so many times `stride` later; null if there is none.
    const End* first_from(std::size_t number, std::size_t stride = 1) const noexcept {
        for (std::size_t i = count_ < most ? 0 : count_ - most; i != count_; ++i) {
            const End& end = ends_[i % most];
            if (end.number >= number && (end.number - number) % stride == 0)
                return &end;
        }
        return nullptr;
    }
    /// The last one, of at least one.
    const End& last() const noexcept { return ends_[(count_ - 1) % most]; }

private:
    static constexpr std::size_t most = 16;

    List<End> ends_; // in a ring
    std::size_t count_ = 0;
};

/// A slot's mark is that of the last batch that was in the slot. The caller may wait for one before: for a buffer to be read
/// that another one has followed in the slot. So, once it has, what reads batches and what makes results marks more of them.
template <Backend B>
class StageEnds {
public:
    /// So many more ends are marked. Each submit looks at this.
    std::size_t to_mark = 0;

    /// Waits for batches are to come whose slots later ones are in.
    void ask(const PlanData& plan, StageStreams<B>& streams) {
        if (to_mark > 0) {
            to_mark = RecentEnds<B>::patience;
            return;
        }
        stages_.resize(plan.stages.size());
        for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
            const StagePlan& own = plan.stages[stage];
            if (own.aside || !(own.reads_batch || stage + 1 == stages_.size()))
                continue;
            const DeviceGuard<B> device(streams.device_of(stage));
            stages_[stage].ends.make();
            stages_[stage].ends.forget(); // There were batches since.
            stages_[stage].is_marked = true;
        }
        to_mark = RecentEnds<B>::patience;
    }
    void forget() noexcept {
        for (OfStage& stage : stages_)
            stage.ends.forget();
    }

    /// Enqueues a mark behind a stage's run on `stream`.
    void mark(std::size_t stage, std::size_t run, BasicStreamRef<B> stream) {
        if (!stages_[stage].is_marked)
            return;
        stages_[stage].ends.record(run, stream);
        --to_mark;
    }

    /// What tells that a stage is through a run sooner than the last of its `marks` for such runs does; null for nothing.
    /// Runs on one of several `lanes` tell nothing of the others'.
    const BasicEvent<B>* before_mark(std::size_t stage, std::size_t run, std::size_t marks,
                                     std::size_t lanes) const noexcept {
        if (stage >= stages_.size())
            return nullptr;
        const RecentEnds<B>& ends = stages_[stage].ends;
        const auto* const end = ends.first_from(run, lanes);
        if (end == nullptr)
            return nullptr;
        if (end->number == run)
            return &end->event;
        const std::size_t last = ends.last().number;
        return to_mark > 0 && end->number < last - (last - run) % marks ? &end->event : nullptr;
    }

private:
    struct OfStage {
        bool is_marked = false;
        RecentEnds<B> ends;
    };
    List<OfStage> stages_; // none before the first question
};

/// Under Schedule::graphed graphs of steps follow each other on one stream, the origin; stages that run eagerly in between are on their own streams.
///
/// A wait for a batch is for the launch that holds it, and not for those behind: so each of the last launches has an event, once asked.
template <Backend B>
class StepEnds {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

public:
    StepEnds(Ref origin, std::size_t marks) : origin_(origin), marked_(marks) {
        const DeviceGuard<B> device(origin_.device());
        launches_.make();
    }

    /// Orders the origin after what stages have been handed on their own streams.
    void to_origin(Core& core) {
        if (on_origin_)
            return;
        core.streams.release_to(origin_);
        on_origin_ = true;
    }
    /// Orders the stages' streams after the origin.
    void to_streams(Core& core) {
        if (!on_origin_)
            return;
        core.streams.join(origin_);
        on_origin_ = false;
    }
    /// Whether the last work is on the origin.
    bool on_origin() const noexcept { return on_origin_; }
    /// The one stream on which all work ends; null while it ends on several.
    const Ref* one_end() const noexcept { return on_origin_ ? &origin_ : nullptr; }

    /// A stage was run on a batch on its own stream, and has set its slot's mark.
    void ran_eagerly(const Core& core, std::size_t stage, std::size_t number) {
        marked_[mark_of(core, stage, number)] = number + 1;
    }
    /// A graph was launched that holds the batches before `end`.
    void launched(std::size_t end) {
        if (to_record_ == 0)
            return;
        --to_record_;
        launches_.record(end - 1, origin_);
    }
    /// What was run is forgotten. None is in flight.
    void start() noexcept {
        on_origin_ = false;
        marked_.assign(marked_.size(), 0);
        launches_.forget();
    }

    /// Waits for batches are to come.
    void expect_waits() noexcept { to_record_ = RecentEnds<B>::patience; }
    /// Waits on the calling thread until a stage that is `lag` batches behind in a graph is through batch `number`.
    void await(Core& core, std::size_t stage, std::size_t number, std::size_t lag) {
        expect_waits();
        const Launch* const launch = launches_.first_from(number + lag);
        if (mark_tells(core, stage, number, lag, launch))
            core.await_mark(stage, number);
        else if (launch != nullptr)
            launch->event.sync();
        else
            core.streams.await(on_origin_ ? 0 : stage, on_origin_ ? 0 : number);
    }
    /// Whether it is.
    bool is_through(Core& core, std::size_t stage, std::size_t number, std::size_t lag) {
        expect_waits();
        const Launch* const launch = launches_.first_from(number + lag);
        if (mark_tells(core, stage, number, lag, launch))
            return core.mark_is_reached(stage, number);
        return launch != nullptr ? launch->event.is_done()
                                 : (on_origin_ ? origin_ : core.streams.of(stage, number)).is_done();
    }

private:
    using Launch = typename RecentEnds<B>::End;

    static std::size_t mark_of(const Core& core, std::size_t stage, std::size_t number) noexcept {
        return core.order->mark_of(stage, number) * core.stages() + stage;
    }
    // Whether the mark of its slot is this batch's, or that of a later one which no launch that holds this batch is before.
    bool mark_tells(const Core& core, std::size_t stage, std::size_t number, std::size_t lag,
                    const Launch* launch) const noexcept {
        const std::size_t end = marked_[mark_of(core, stage, number)];
        return end > number && (launch == nullptr || end + lag <= launch->number + 1);
    }

    Ref origin_;
    bool on_origin_ = false;
    List<std::size_t> marked_;  // For each mark: the batches before this one are in it.
    RecentEnds<B> launches_;    // by the last batch that each holds
    std::size_t to_record_ = 0; // So many more launches.
};

} // namespace sluice::detail
