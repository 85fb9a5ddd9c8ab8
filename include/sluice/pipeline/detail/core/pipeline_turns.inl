// Bodies of pipeline_core.hpp: stages that run once for several batches.
#pragma once

namespace sluice::detail {

template <Backend B>
std::size_t PipelineCore<B>::batches_a_result() const noexcept {
    return core_.rates.batches_an_output(core_.stages() - 1);
}

template <Backend B>
std::size_t PipelineCore<B>::next_result(std::size_t next) const noexcept {
    return core_.rates.next_output(core_.stages() - 1, next);
}

template <Backend B>
void PipelineCore<B>::end_turns() {
    if (!core_.rates.any())
        return;
    const Call call(*this, "run");
    or_fail([&] { end_all(); });
}

// All that was submitted passes all stages, and the calling thread waits for that.
template <Backend B>
void PipelineCore<B>::end_all() {
    run_turns();
    leave();
    sync();
    begin_turns_anew();
    throw_known_fault();
    if (tuning_ && parts_->tuner->given_up())
        end_trial();
}

// Runs the stages that run once for several batches for those that there are, behind all that was submitted.
template <Backend B>
void PipelineCore<B>::run_turns() {
    if (core_.rates.is_whole(submitted_))
        return;
    throw_known_fault();
    enter();
    executor_->flush(core_);
    for (std::size_t stage = 0; stage < core_.stages(); ++stage) {
        if (!core_.rates.runs(stage, submitted_ - 1))
            executor_->run_behind_last(core_, stage, submitted_ - 1, last_);
    }
}

// Later batches are others than those that stages have run for. Nothing is under way.
template <Backend B>
void PipelineCore<B>::begin_turns_anew() {
    if (core_.rates.is_whole(submitted_))
        return;
    core_.rates.begin_anew(submitted_);
    core_.slots.lay_out_rows(core_.plan, core_.rates);
    executor_->reset(); // Graphs are of the slots that were next.
    executor_->start_at(submitted_);
}

} // namespace sluice::detail
