/// \file
/// Schedule::graphed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <sluice/pipeline/detail/graphed_stages.hpp>
#include <sluice/pipeline/detail/graphed_steps.hpp>

namespace sluice::detail {

/// One graph for all stages, where all of them can be captured and the caller does not wish one for each, or else one for
/// each that can.
template <class Core>
class GraphedExecutor {
    using Hold = SourceHold<typename Core::backend>;

public:
    GraphedExecutor(Core& core, const GraphOptions& options, int steps, bool each_stage) {
        if (steps < 0)
            throw Error("a graph needs at least 1 step (0: as many as is good), got " +
                        std::to_string(steps));
        if constexpr (Core::Shape::all_capturable) {
            bool all = !each_stage;
            Core::for_each_stage(
                [&](auto stage) { all = all && core.template stage<stage>().options().graphed; });
            if (all) {
                steps_.emplace(core, options, static_cast<std::size_t>(steps));
                return;
            }
        }
        stages_.emplace(core, options);
    }

    void submit(Core& core, std::size_t number, const GivenBatch<Core>& batch, const Hold& hold) {
        visit(*this, [&](auto& executor) { executor.submit(core, number, batch, hold); });
    }
    /// Whether a submitted batch is kept beyond `submit`, and its hold given up later.
    bool keeps_batches() const noexcept {
        return visit(*this, [](const auto& executor) { return executor.keeps_batches(); });
    }
    /// Sees that all batches are on their way through all stages.
    void flush(Core& core) {
        visit(*this, [&](auto& executor) { executor.flush(core); });
    }
    /// Forgets all batches. Nobody works on any.
    void reset() noexcept {
        visit(*this, [](auto& executor) { executor.reset(); });
    }
    /// Waits on the calling thread until stage I is through batch `number`.
    template <std::size_t Index>
    void await_stage(Core& core, std::size_t number) {
        visit(*this, [&](auto& executor) { executor.template await_stage<Index>(core, number); });
    }
    /// Whether the last batches were replayed without a stage's being called, as the next will be, then.
    bool replays() const noexcept {
        return visit(*this, [](const auto& executor) { return executor.replays(); });
    }
    /// Calls `visitor(stage, stream)` for the streams on which stages are captured: CUDA's backend keeps the fault of a
    /// captured host function with its stream.
    template <class Visitor>
    void for_each_capture_stream(Visitor&& visitor) const {
        visit(*this, [&](const auto& executor) { executor.for_each_capture_stream(visitor); });
    }
    GraphCounters counters() const noexcept {
        return visit(*this, [](const auto& executor) { return executor.counters(); });
    }

private:
    template <class Self, class Visitor>
    static decltype(auto) visit(Self& self, Visitor&& visitor) {
        if constexpr (Core::Shape::all_capturable) {
            if (self.steps_) [[likely]]
                return visitor(*self.steps_);
        }
        return visitor(*self.stages_);
    }

    struct Nothing {};
    std::optional<
        typename std::conditional_t<Core::Shape::all_capturable, std::type_identity<GraphedSteps<Core>>,
                                    std::type_identity<Nothing>>::type>
        steps_;
    std::optional<GraphedStages<Core>> stages_;
};

} // namespace sluice::detail
