// The streams on which the stages of whole steps are captured, and the waits between them within one graph.
#pragma once

#include <cstddef>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/core/stage_core.hpp>

namespace sluice::detail {

/// One or more for each stage, made once: a capture forks to all of them and joins them again.
template <Backend B>
class CaptureStreams {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

public:
    /// The batches that each stage works on in one graph: `begin[stage]` to `end[stage]`.
    struct Range {
        const List<std::size_t>& begin;
        const List<std::size_t>& end;
        bool holds(std::size_t stage, std::size_t batch) const noexcept {
            return batch >= begin[stage] && batch < end[stage];
        }
    };

    explicit CaptureStreams(Core& core)
        : captured_as_(core.stages()), named_(core.stages()), lanes_(core.stages()), marks_(core.stages()),
          fences_(core.stages()) {
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            const std::size_t first = captured_as_[stage] = core.streams.first_sharing(stage);
            any_shared_ = any_shared_ || first != stage;
            named_[first] = first == stage ? static_cast<int>(stage) : -1;
            const DeviceGuard<B> device(core.streams.device_of(stage));
            for (std::size_t lane = 0; first == stage && lane < core.streams.lanes(stage); ++lane)
                lanes_[stage].emplace_back(options_like(core.streams.of(stage, lane)));
            for (std::size_t slot = 0; slot < core.order->slots(); ++slot)
                marks_[stage].emplace_back();
            fences_[stage].emplace();
        }
        const DeviceGuard<B> device(core.streams.device_of(0));
        fork_.emplace();
    }

    /// On whose streams a stage is captured: of several on one external stream, on the first one's.
    const List<std::size_t>& captured_as() const noexcept { return captured_as_; }
    bool any_shared() const noexcept { return any_shared_; }

    /// All streams wait for `origin`.
    void fork(Ref origin) {
        fork_->record(origin);
        for_each([&](int, Ref lane) { lane.wait(*fork_); });
    }
    /// `origin` waits for all streams.
    void join(Ref origin) {
        for (std::size_t stage = 0; stage < lanes_.size(); ++stage) {
            for (const BasicStream<B>& lane : lanes_[stage]) {
                fences_[stage]->record(lane);
                origin.wait(*fences_[stage]);
            }
        }
    }

    /// The stream for a stage and batch, after all within the graph that its work must come after. What is not in it came
    /// before it.
    Ref begin(const Core& core, std::size_t stage, std::size_t batch, const Range& graph) {
        const auto& lanes = lanes_[captured_as_[stage]];
        const Ref stream = lanes[batch % lanes.size()];
        core.for_each_wait(stage, batch, [&](std::size_t of, std::size_t of_batch) {
            if (graph.holds(of, of_batch))
                stream.wait(marks_[of][core.order->mark_of(of, of_batch)]);
        });
        return stream;
    }
    /// The work on it is enqueued.
    void end(const Core& core, std::size_t stage, std::size_t batch, Ref stream) {
        if (core.plan.stages[stage].awaited)
            marks_[stage][core.order->mark_of(stage, batch)].record(stream);
    }

    /// Calls `visit(stage, stream)` for each stream, with the stage that is captured there, or -1 for several.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t stage = 0; stage < lanes_.size(); ++stage) {
            for (const BasicStream<B>& lane : lanes_[stage])
                visit(named_[stage], lane.ref());
        }
    }

private:
    List<std::size_t> captured_as_;
    bool any_shared_ = false;
    List<int> named_;
    List<List<BasicStream<B>>> lanes_;
    List<List<BasicEvent<B>>> marks_;
    List<Maybe<BasicEvent<B>>> fences_;
    Maybe<BasicEvent<B>> fork_;
};

} // namespace sluice::detail
