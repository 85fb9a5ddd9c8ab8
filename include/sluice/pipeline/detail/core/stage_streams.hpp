// Where the stages of a pipeline run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/core/faults.hpp>
#include <sluice/pipeline/detail/core/stage_shares.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/stage.hpp>

namespace sluice::detail {

/// The streams of each stage, one or more, made here or external. Under `Schedule::serial` the stages of one device share one.
template <Backend B>
class StageStreams {
public:
    using Ref = BasicStreamRef<B>;

    StageStreams(Schedule schedule, std::size_t stages)
        : schedule_(schedule), device_(B::current_device()), one_device_(B::device_count() == 1) {
        of_stage_.reserve(stages);
    }

    /// Before any is added: see `StageShares`.
    void share_out(const PlanData& plan, const StageSetup<B>* stages) {
        shares_.share_out(plan, stages, schedule_, device_);
    }
    const StageShares<B>& shares() const noexcept { return shares_; }
    /// Adds the streams of the next stage. Throws `Error` for options that do not go together.
    void add(const std::string& stage, const StageOptions<B>& options) {
        add_lanes(stage, options);
        note_first(of_stage_.size() - 1);
    }
    /// Adds a stage that has no stream.
    void add_without_stream() {
        of_stage_.emplace_back().device = device_;
        note_first(of_stage_.size() - 1);
    }
    /// Gives stage `stage` streams for its signals to threads and its waits for them, beside each of its own: each takes
    /// some 2 microseconds, in which the stage's own stream goes on.
    void add_sides(std::size_t stage) {
        Streams& streams = of_stage_[stage];
        const DeviceGuard<B> device(streams.device);
        for (std::size_t lane = 0; lane < streams.lanes.size(); ++lane)
            streams.sides.emplace_back();
    }

    /// Whether all stages of a device share the first one's stream from now on, or each has its own. Nothing is under way.
    void use_one_a_device(bool one) {
        for (Streams& streams : of_stage_) {
            if (streams.own.empty())
                streams.own = streams.lanes;
            streams.lanes = streams.own;
        }
        for (Streams& streams : of_stage_) {
            for (const Streams& earlier : of_stage_) {
                if (one && !streams.own.empty() && !earlier.own.empty() && earlier.device == streams.device) {
                    streams.lanes.assign(1, earlier.own.front());
                    break;
                }
            }
        }
        for (std::size_t stage = 0; stage < of_stage_.size(); ++stage)
            note_first(stage);
    }

    /// The null stream for a stage that has none.
    Ref of(std::size_t stage, std::size_t batch) const noexcept {
        const First& first = firsts_[stage];
        if (first.lanes <= 1) [[likely]]
            return first.lane;
        return of_stage_[stage].lanes[batch % first.lanes];
    }
    Ref signals_of(std::size_t stage, std::size_t batch) const noexcept {
        return side_of(stage, batch).signals;
    }
    Ref waits_of(std::size_t stage, std::size_t batch) const noexcept { return side_of(stage, batch).waits; }
    /// Orders the stage's own stream after what is on the one for its waits.
    void join_waits(std::size_t stage, std::size_t batch) {
        const Side& side = side_of(stage, batch);
        side.waited.record(side.waits);
        of(stage, batch).wait(side.waited);
    }
    std::size_t lanes(std::size_t stage) const noexcept { return firsts_[stage].lanes; }
    /// Whether any stage was given an external stream.
    bool any_external() const noexcept { return !external_.empty(); }
    bool is_external(std::size_t stage) const noexcept {
        for (const Ref external : external_) {
            if (firsts_[stage].lanes == 1 && firsts_[stage].lane == external)
                return true;
        }
        return false;
    }
    /// Whether two stages were given the same external stream.
    bool share(std::size_t stage, std::size_t other) const noexcept {
        const First &one = firsts_[stage], &two = firsts_[other];
        return one.lanes == 1 && two.lanes == 1 && one.lane == two.lane;
    }
    /// The first of those that share the stream of `stage`.
    std::size_t first_sharing(std::size_t stage) const noexcept {
        std::size_t first = 0;
        while (first < stage && !share(first, stage))
            ++first;
        return first;
    }
    int device_of(std::size_t stage) const noexcept { return of_stage_[stage].device; }
    /// The pipeline's own.
    int device() const noexcept { return device_; }
    bool several_devices() const noexcept { return several_devices_; }
    /// Whether the machine has no other.
    bool only_device() const noexcept { return one_device_; }

    /// Orders the stages' later work after what is on the external streams now.
    void wait_for_external() {
        for (const Ref external : external_)
            join(external);
    }
    /// Orders later work on the external streams after what the stages have been handed.
    void release_to_external() {
        for (const Ref external : external_)
            release_to(external);
    }
    /// Orders the stages' later work after what is on `stream` now.
    void join(Ref stream) {
        BasicEvent<B>& fence = *fence_of(several_devices_ ? stream.device() : device_);
        fence.record(stream);
        for (const Active& active : active_) {
            if (!(active.stream == stream))
                active.stream.wait(fence);
        }
    }
    /// Orders later work on `stream` after what the stages have been handed.
    void release_to(Ref stream) {
        for (const Active& active : active_) {
            if (active.stream == stream)
                continue;
            // A wait keeps to the record that it saw, so that one event serves all of them.
            active.fence->record(active.stream);
            stream.wait(*active.fence);
        }
    }
    /// Waits on the calling thread for what stage `stage` has been handed for `batch` and before.
    void await(std::size_t stage, std::size_t batch) {
        BasicEvent<B>& fence = *fence_of(device_of(stage));
        fence.record(of(stage, batch));
        fence.sync();
    }

    /// Calls `visit(stream)` for each stream that is used.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const Active& active : active_)
            visit(active.stream);
    }
    /// The same for each that a stage was given.
    template <class Visit>
    void for_each_external(Visit&& visit) const {
        for (const Ref external : external_)
            visit(external);
    }
    /// The stage that a stream is for; none if there are several.
    std::optional<std::size_t> stage_of(Ref stream) const {
        std::optional<std::size_t> found;
        for (std::size_t stage = 0; stage < of_stage_.size(); ++stage) {
            for (const Ref lane : of_stage_[stage].lanes) {
                if (!(lane == stream))
                    continue;
                if (found && *found != stage)
                    return std::nullopt;
                found = stage;
            }
        }
        return found;
    }
    /// All streams are there: a wait for one of them that is given up knows which others belong to it.
    void all_added() {
        if constexpr (SemaphoreCalls<B>::there)
            together_.emplace(&is_active, this);
    }
    /// Ends waits of the streams for semaphores that will not be signalled; whether there were any.
    bool give_up_waits() const noexcept {
        if constexpr (SemaphoreCalls<B>::there) {
            return SemaphoreWaits::instance().give_up(&is_active, this);
        } else {
            return false;
        }
    }
    /// Whether any of the streams waits for a semaphore that the caller is to signal.
    bool lack_signals() const noexcept {
        if constexpr (SemaphoreCalls<B>::there)
            return SemaphoreWaits::instance().any(&is_active, this);
        else
            return false;
    }
    /// Waits for all work, whatever becomes of it.
    void drain() const noexcept {
        for (const Active& active : active_) {
            try {
                active.stream.sync();
            } catch (...) {
                // The caller already has an error to report, or is a destructor.
            }
        }
        for_each_side([](const BasicStream<B>& stream) {
            try {
                stream.sync();
            } catch (...) {
                // As above.
            }
        });
    }
    void clear_failures() const noexcept {
        for (const Active& active : active_)
            B::clear_failure(active.stream.get());
        // Those beside them run no work of their own, and what they pass on goes to threads, which ask for no fault.
    }

    /// Throws `Error` for a stream of a device on which no stage runs. Allocates nothing for one of its own.
    void require_own_device(Ref stream, const char* what) const {
        const int device = stream.device();
        if (device == device_)
            return;
        for (const Streams& streams : of_stage_) {
            if (streams.device == device)
                return;
        }
        throw_other_device(what, device, "the pipeline", device_);
    }

private:
    struct Side {
        BasicStream<B> signals;
        BasicStream<B> waits;
        mutable BasicEvent<B> waited;
    };
    const Side& side_of(std::size_t stage, std::size_t batch) const noexcept {
        const List<Side>& sides = of_stage_[stage].sides;
        return sides[batch % sides.size()];
    }
    template <class Visit>
    void for_each_side(Visit&& visit) const noexcept {
        for (const Streams& streams : of_stage_) {
            for (const Side& side : streams.sides) {
                visit(side.waits);
                visit(side.signals);
            }
        }
    }

    struct Streams {
        List<Ref> lanes;
        List<Ref> own; // What `lanes` is where stages do not share; empty until they might.
        List<Side> sides;
        int device = 0;
    };
    // What is asked for in every step, side by side: between two calls of the driver little stays in the nearest cache.
    struct First {
        Ref lane;
        std::size_t lanes;
    };
    struct Active {
        Ref stream;
        int device;
        BasicEvent<B>* fence;
    };
    struct Fence {
        int device;
        Owned<BasicEvent<B>> event;
    };

    static bool is_active(const void* self, const void* stream) {
        for (const Active& active : static_cast<const StageStreams*>(self)->active_) {
            if (active.stream.get() == stream)
                return true;
        }
        return false;
    }

    void add_lanes(const std::string& stage, const StageOptions<B>& options) {
        Streams& streams = of_stage_.emplace_back();
        streams.device = require_stage_device(stage, options, device_);
        if (streams.device != device_)
            several_devices_ = true;
        if (options.stream)
            external_.push_back(*options.stream);
        if (schedule_ == Schedule::serial) {
            for (const Streams& earlier : of_stage_) {
                if (&earlier != &streams && !earlier.lanes.empty() && earlier.device == streams.device) {
                    streams.lanes = earlier.lanes;
                    return;
                }
            }
        }
        if (options.stream) {
            streams.lanes.push_back(*options.stream);
        } else {
            const DeviceGuard<B> device(streams.device);
            const int lanes = schedule_ == Schedule::serial ? 1 : options.lanes;
            for (int lane = 0; lane < lanes; ++lane) {
                owned_.emplace_back(StreamOptions{.priority = options.priority,
                                                  .share = shares_.of(of_stage_.size() - 1).share});
                streams.lanes.push_back(owned_.back());
            }
        }
        for (const Ref lane : streams.lanes)
            active_.push_back({lane, streams.device, fence_of(streams.device)});
    }
    void note_first(std::size_t stage) {
        const List<Ref>& lanes = of_stage_[stage].lanes;
        if (firsts_.size() <= stage)
            firsts_.push_back({Ref(NoStream{}), 0});
        firsts_[stage] = {lanes.empty() ? Ref(NoStream{}) : lanes.front(), lanes.size()};
    }
    BasicEvent<B>* fence_of(int device) {
        for (const Fence& fence : fences_) {
            if (fence.device == device)
                return fence.event.get();
        }
        const DeviceGuard<B> guard(device);
        fences_.push_back({device, make_owned<BasicEvent<B>>()});
        return fences_.back().event.get();
    }

    StageShares<B> shares_; // first: it ends after all streams
    Schedule schedule_;
    int device_;
    bool one_device_;
    bool several_devices_ = false;
    List<Streams> of_stage_;
    List<First> firsts_;
    List<BasicStream<B>> owned_;
    List<Active> active_;
    List<Ref> external_;
    List<Fence> fences_;
    Maybe<SemaphoreWaits::Together> together_; // last: it is destroyed first
};

} // namespace sluice::detail
