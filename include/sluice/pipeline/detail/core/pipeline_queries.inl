// Bodies of pipeline_core.hpp: what a pipeline tells of itself.
#pragma once

namespace sluice::detail {

template <Backend B>
std::size_t PipelineCore<B>::stages() const noexcept {
    return core_.stages();
}

template <Backend B>
GraphCounters PipelineCore<B>::graph_counters() const noexcept {
    return executor_->counters();
}

template <Backend B>
void PipelineCore<B>::require_stage(const char* what, std::size_t index) const {
    if (index >= core_.stages()) {
        throw Error(std::string("the ") + what + " of stage " + std::to_string(index) +
                    " was asked for, of a pipeline of " + detail::counted(core_.stages(), "stage") +
                    ", counted from 0");
    }
}

template <Backend B>
BasicStreamRef<B> PipelineCore<B>::stream(std::size_t index) const {
    require_stage("stream", index);
    if (core_.plan.stages[index].aside)
        throw Error("the stream of stage '" + core_.name(index) +
                    "' was asked for, which is a CPU stage and has none");
    return core_.streams.of(index, 0);
}

template <Backend B>
const std::string& PipelineCore<B>::stage_name(std::size_t index) const {
    require_stage("name", index);
    return core_.name(index);
}

template <Backend B>
bool PipelineCore<B>::is_cpu_stage(std::size_t index) const {
    require_stage("kind", index);
    return core_.plan.stages[index].aside;
}

template <Backend B>
int PipelineCore<B>::device_of(std::size_t index) const {
    require_stage("device", index);
    return core_.streams.device_of(index);
}

template <Backend B>
int PipelineCore<B>::multiprocessors(std::size_t index) const {
    require_stage("share", index);
    return core_.streams.shares().of(index).multiprocessors;
}

template <Backend B>
std::string PipelineCore<B>::shares() const {
    std::string text;
    for (const SharedDevice& device : core_.streams.shares().devices()) {
        text += (text.empty() ? "Of the " : " Of the ") +
                detail::counted(device.multiprocessors, "multiprocessor") + " of device " +
                std::to_string(device.device) + ", which it shares out in groups of " +
                std::to_string(device.unit);
        const char* before = ", ";
        int rest = 0;
        for (std::size_t stage = 0; stage < core_.stages(); ++stage) {
            const StageShare& own = core_.streams.shares().of(stage);
            if (own.device != device.device)
                continue;
            if (own.asked == 0) {
                rest = own.multiprocessors;
                continue;
            }
            text += before + core_.name(stage) + " has " + std::to_string(own.multiprocessors) +
                    (own.asked == own.multiprocessors
                         ? ""
                         : " for the " + std::to_string(own.asked) + " that it asked for");
            before = ", ";
        }
        text += rest > 0 ? " and the other stages have " + std::to_string(rest) + '.' : ".";
    }
    return text;
}

template <Backend B>
const PlanData& PipelineCore<B>::plan() const noexcept {
    return core_.plan;
}

template <Backend B>
std::size_t PipelineCore<B>::slots() const noexcept {
    return core_.slots.count();
}

template <Backend B>
std::size_t PipelineCore<B>::in_flight() const noexcept {
    return parts_->in_flight.limit();
}

template <Backend B>
typename PipelineCore<B>::StagePlace PipelineCore<B>::place_of(std::size_t index) const {
    const StagePlan& stage = core_.plan.stages[index];
    StagePlace place;
    place.lanes = core_.lanes(index);
    place.priority = stage.aside ? 0 : options_like(core_.streams.of(index, 0)).priority;
    place.external_stream = core_.streams.is_external(index);
    place.graphed = stage.capturable && core_.wants_graphs(index);
    place.batches_a_run = core_.rates.batches_a_run(index);
    place.every = core_.rates.every(index);
    const StageShare& share = core_.streams.shares().of(index);
    place.multiprocessors = share.asked > 0 ? share.multiprocessors : 0;
    if (stage.maker >= 0 && !stage.hands_on) {
        const auto maker = static_cast<std::size_t>(stage.maker);
        place.slot_size = core_.slots.ops(maker).empty ? 0 : core_.slots.ops(maker).bytes;
        place.slot_bytes = core_.slots.bytes(maker);
    }
    for (std::size_t lane = 0; !stage.aside && lane < place.lanes; ++lane)
        place.streams.push_back(core_.streams.of(index, lane));
    return place;
}

template <Backend B>
StageTimes<B>& PipelineCore<B>::require_times(const char* call) {
    if (!core_.times)
        throw Error(std::string(call) +
                    ": nothing has been noted; make the pipeline with PipelineOptions::timed_batches");
    return *core_.times;
}

template <Backend B>
std::vector<StageTime> PipelineCore<B>::stage_times() {
    const Call call(*this, "stage_times");
    const StageTimes<B>& times = require_times("stage_times");
    core_.drain_threads();
    return times.all([this](std::size_t stage, std::size_t batch) { return core_.rates.runs(stage, batch); });
}

template <Backend B>
std::vector<StageTime> PipelineCore<B>::submit_times() {
    const Call call(*this, "submit_times");
    return require_times("submit_times").of_submits();
}

template <Backend B>
const ScheduleChoice& PipelineCore<B>::choice() const {
    if (!parts_->tuner)
        throw Error(std::string("choice: nothing is chosen; the pipeline was made with Schedule::") +
                    to_string(options_.schedule) + ", not Schedule::automatic");
    return parts_->tuner->choice();
}

} // namespace sluice::detail
