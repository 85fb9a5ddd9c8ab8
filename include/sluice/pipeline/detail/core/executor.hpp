/// \file
/// What a pipeline asks of what runs its schedule.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/call_ref.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

template <Backend B>
class StageCore;

/// Runs the stages in the order of a schedule. What is not overridden is that of one that keeps nothing back.
template <Backend B>
class Executor {
public:
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

    Executor() = default;
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    virtual ~Executor() = default;

    /// Is the pipeline's from here on. Nothing is under way.
    virtual void begin(Core&) {}
    /// Enqueues all stages for a batch, now or later.
    virtual void submit(Core& core, std::size_t number, const GivenBatch<B>& batch,
                        const SourceHold<B>& hold) = 0;
    /// Runs a stage on the last batch that was submitted, before as many have come as it runs once for. All batches are on their way.
    virtual void run_behind_last(Core& core, std::size_t stage, std::size_t number,
                                 const GivenBatch<B>& batch) {
        core.run_in_order(stage, number, batch);
    }
    /// Waits on the calling thread until a stage is through a batch.
    virtual void await_stage(Core& core, std::size_t stage, std::size_t number) = 0;
    /// Whether it is. What comes after it there may have to be through as well.
    virtual bool is_through(Core& core, std::size_t stage, std::size_t number) {
        return core.mark_is_reached(stage, number);
    }
    /// The one stream on which all work ends so far, of a device that is stage 0's; none where each stage's ends on its own.
    virtual const Ref* one_end() const noexcept { return nullptr; }

    /// Whether a submitted batch is kept beyond `submit`, and its hold given up later.
    bool keeps_batches() const noexcept { return keeps_batches_; }
    /// A stage's next batch: those from there on are held.
    virtual std::size_t next_of(std::size_t) const noexcept {
        return (std::numeric_limits<std::size_t>::max)();
    }
    /// Batches come from `number` on. None is in flight.
    virtual void start_at(std::size_t) noexcept {}
    /// Whether the last batches were replayed without a stage's being called, as the next will be, then.
    bool replays() const noexcept { return replays_; }
    /// Whether graphs of all stages have run.
    virtual bool has_run_steps() const noexcept { return false; }
    /// Sees that all batches are on their way through all stages.
    virtual void flush(Core&) {}
    /// A stage has thrown for `batch`: sees that all batches before it are on their way through all stages.
    virtual void finish_before(Core&, std::size_t /*batch*/) {}
    /// Forgets all batches. None is in flight.
    virtual void reset() noexcept {}
    /// Calls `visit(stage, stream)` for the streams on which stages are captured, with -1 where there are several: CUDA's
    /// backend keeps the fault of a captured host function with its stream.
    virtual void for_each_capture_stream(const CallRef<void(int, Ref)>&) const {}
    virtual GraphCounters counters() const noexcept { return {}; }
    /// Why work was not captured first, or what has changed; empty while all is well.
    virtual std::string first_refusal() const { return {}; }

protected:
    // Not asked for by a call: each submit looks at them.
    bool keeps_batches_ = false;
    bool replays_ = false;
};

} // namespace sluice::detail
