// Bodies of pipeline.hpp: what a pipeline tells of itself.
#pragma once

namespace sluice {

template <class... Ss, class... Makers>
BasicStreamRef<typename Pipeline<Stages<Ss...>, Slots<Makers...>>::backend>
Pipeline<Stages<Ss...>, Slots<Makers...>>::stream(std::size_t index) const {
    require_stage("stream", index);
    if (Shape::aside[index])
        throw Error("the stream of stage '" + core_.name(index) +
                    "' was asked for, which is a CPU stage and has none");
    return core_.streams.of(index, 0);
}

template <class... Ss, class... Makers>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::require_stage(const char* what, std::size_t index) const {
    if (index >= stage_count) {
        throw Error(std::string("the ") + what + " of stage " + std::to_string(index) +
                    " was asked for, of a pipeline of " + std::to_string(stage_count) +
                    " stages, counted from 0");
    }
}

template <class... Ss, class... Makers>
const std::string& Pipeline<Stages<Ss...>, Slots<Makers...>>::stage_name(std::size_t index) const {
    require_stage("name", index);
    return core_.name(index);
}

template <class... Ss, class... Makers>
bool Pipeline<Stages<Ss...>, Slots<Makers...>>::is_cpu_stage(std::size_t index) const {
    require_stage("kind", index);
    return Shape::aside[index];
}

template <class... Ss, class... Makers>
int Pipeline<Stages<Ss...>, Slots<Makers...>>::device_of(std::size_t index) const {
    require_stage("device", index);
    return core_.streams.device_of(index);
}

template <class... Ss, class... Makers>
std::vector<StageTime> Pipeline<Stages<Ss...>, Slots<Makers...>>::stage_times() {
    const Call call(core_.streams, in_use_, "stage_times");
    if (!core_.times)
        throw Error(
            "stage_times: nothing has been noted; make the pipeline with PipelineOptions::timed_batches");
    core_.cpu_stages.drain();
    return core_.times->all();
}

template <class... Ss, class... Makers>
std::vector<StageTime> Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_times() {
    const Call call(core_.streams, in_use_, "submit_times");
    if (!core_.times)
        throw Error(
            "submit_times: nothing has been noted; make the pipeline with PipelineOptions::timed_batches");
    return core_.times->of_submits();
}

template <class... Ss, class... Makers>
GraphCounters Pipeline<Stages<Ss...>, Slots<Makers...>>::graph_counters() const noexcept {
    return with_executor(*this, [](const auto& executor) -> GraphCounters { return executor.counters(); });
}

template <class... Ss, class... Makers>
const ScheduleChoice& Pipeline<Stages<Ss...>, Slots<Makers...>>::choice() const {
    if (!tuner_)
        throw Error(std::string("choice: nothing is chosen; the pipeline was made with Schedule::") +
                    to_string(options_.schedule) + ", not Schedule::automatic");
    return tuner_->choice();
}

} // namespace sluice
