// Where the work on a batch ends under Schedule::graphed.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// Graphs of steps follow each other on one stream, the origin; stages that run eagerly in between are on their own streams.
///
/// A wait for a batch is for the launch that holds it, and not for those behind: so each of the last launches has an event.
/// That costs the host time; so none is recorded before the first question, and none again after a while without one.
template <Backend B>
class StepEnds {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

public:
    StepEnds(Ref origin, std::size_t stages) : origin_(origin), eager_from_(stages), eager_until_(stages) {
        const DeviceGuard<B> device(origin_.device());
        launches_.resize(most);
    }

    /// Orders the origin after what stages have been handed on their own streams. `next`: each stage's next batch.
    void to_origin(Core& core, const List<std::size_t>& next) {
        if (on_origin_)
            return;
        eager_until_ = next;
        core.streams.release_to(origin_);
        on_origin_ = true;
    }
    /// Orders the stages' streams after the origin.
    void to_streams(Core& core, const List<std::size_t>& next) {
        if (!on_origin_)
            return;
        eager_from_ = next;
        core.streams.join(origin_);
        on_origin_ = false;
    }
    /// Whether the last work is on the origin.
    bool on_origin() const noexcept { return on_origin_; }
    /// The one stream on which all work ends; null while it ends on several.
    const Ref* one_end() const noexcept { return on_origin_ ? &origin_ : nullptr; }

    /// A graph was launched that holds the batches before `end`.
    void launched(std::size_t end) {
        if (to_record_ == 0)
            return;
        --to_record_;
        Launch& launch = launches_[count_ % most];
        launch.end = end;
        launch.event.record(origin_);
        ++count_;
    }
    /// Batches come from `number` on. None is in flight.
    void start_at(std::size_t number) noexcept {
        on_origin_ = false;
        eager_from_.assign(eager_from_.size(), number);
        count_ = 0;
    }

    /// Waits for batches are to come.
    void expect_waits() noexcept { to_record_ = patience; }
    /// Waits on the calling thread until a stage that is `lag` batches behind in a graph is through batch `number`.
    void await(Core& core, std::size_t stage, std::size_t number, std::size_t lag) {
        expect_waits();
        if (is_marked(stage, number))
            core.await_mark(stage, number);
        else if (const BasicEvent<B>* const end = behind(number + lag))
            end->sync();
        else
            core.streams.await(on_origin_ ? 0 : stage, on_origin_ ? 0 : number);
    }
    /// Whether it is.
    bool is_through(Core& core, std::size_t stage, std::size_t number, std::size_t lag) {
        expect_waits();
        if (is_marked(stage, number))
            return core.mark_is_reached(stage, number);
        if (const BasicEvent<B>* const end = behind(number + lag))
            return end->is_done();
        return (on_origin_ ? origin_ : core.streams.of(stage, number)).is_done();
    }

private:
    static constexpr std::size_t most = 16;
    static constexpr std::size_t patience = 64;

    struct Launch {
        std::size_t end = 0;
        BasicEvent<B> event;
    };

    // Whether the last mark of its slot is this batch's, or a later one's.
    bool is_marked(std::size_t stage, std::size_t number) const noexcept {
        return number >= eager_from_[stage] && (!on_origin_ || number < eager_until_[stage]);
    }
    // Of the first launch known to hold batch `number`; of a later one, where those before are forgotten; null if there is none.
    const BasicEvent<B>* behind(std::size_t number) const noexcept {
        for (std::size_t launch = count_ < most ? 0 : count_ - most; launch != count_; ++launch) {
            const Launch& at = launches_[launch % most];
            if (at.end > number)
                return &at.event;
        }
        return nullptr;
    }

    Ref origin_;
    bool on_origin_ = false;
    List<std::size_t> eager_from_;  // Each stage's batches that were last on its own stream,
    List<std::size_t> eager_until_; // which go on while nothing is on the origin.
    List<Launch> launches_;         // in a ring
    std::size_t count_ = 0;         // since the first batch
    std::size_t to_record_ = 0;     // So many more launches get an event.
};

} // namespace sluice::detail
