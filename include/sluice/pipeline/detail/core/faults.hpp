// Where a fault came from, as far as that can be told, and what is refused.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <sched.h>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/pipeline_options.hpp>
#include <sluice/pipeline/stage.hpp>

namespace sluice::detail {

/// Whether an error may be of work that an earlier call enqueued: CUDA reports such a one from any later call.
inline bool is_late(const Error& error) noexcept {
    const std::string_view name = error.name();
    for (const std::string_view late :
         {"cudaErrorIllegalAddress", "cudaErrorLaunchFailure", "cudaErrorAssert",
          "cudaErrorMisalignedAddress", "cudaErrorInvalidAddressSpace", "cudaErrorInvalidPc",
          "cudaErrorHardwareStackError", "cudaErrorIllegalInstruction", "cudaErrorLaunchTimeout",
          "cudaErrorECCUncorrectable", "cudaErrorTensorMemoryLeak", "cudaErrorContained",
          "cudaErrorExternalDevice"}) {
        if (name == late)
            return true;
    }
    return false;
}

[[noreturn]] inline void throw_in_use(const char* call) {
    throw Error(std::string(call) +
                ": the pipeline is in use, by another thread or by this call's own stage; drive a "
                "pipeline from one thread, and not from within its stages");
}

/// Under whatever schedule: one switch must not show what another option hides.
inline const PipelineOptions& require_options(const PipelineOptions& options) {
    require_named("PipelineOptions::schedule", options.schedule, Schedule::automatic,
                  "serial, overlapped, graphed or automatic");
    constexpr int any = (std::numeric_limits<int>::max)();
    require_within("PipelineOptions::slots", options.slots, 1, most_of_option);
    require_within("PipelineOptions::in_flight", options.in_flight, 0, any, "as many as is good");
    require_within("PipelineOptions::steps_per_graph", options.steps_per_graph, 0, any, "as many as is good");
    require_within("PipelineOptions::timed_batches", options.timed_batches, 0, most_of_option);
    require_options(options.graphs);
    return options;
}

inline void require_lanes(const std::string& stage, int lanes) {
    require_within("stage '" + stage + "': StageOptions::lanes", lanes, 1, 1 << 16);
}

/// The device of a stage's streams in a pipeline of device `pipelines`. Throws `Error` for options that do not go together.
template <Backend B>
int require_stage_device(const std::string& stage, const StageOptions<B>& options, int pipelines) {
    const int device = options.device == -1 ? pipelines : options.device;
    require_lanes(stage, options.lanes);
    if (device < 0 || device >= B::device_count()) {
        throw Error("stage '" + stage + "': there is no device " + std::to_string(device) + "; " +
                    there_are(B::device_count(), "device") + ", counted from 0");
    }
    if (!options.stream)
        return device;
    if (options.lanes > 1) {
        throw Error("stage '" + stage + "': a stage on an external stream has 1 lane, and " +
                    std::to_string(options.lanes) + " were asked for");
    }
    const int external = options.stream->device();
    if (external != device) {
        throw_other_device("stage '" + stage + "': the external stream", external,
                           options.device == -1 ? "the pipeline" : "the stage", device);
    }
    return device;
}

struct FaultPlace {
    int stage = -1;
    std::optional<std::size_t> batch;
    bool or_earlier = false;
};

/// What the events of the batches before `submitted` tell.
struct EventFaults {
    std::optional<FaultPlace> first; ///< by batch, then by stage
    bool all_done = true;            ///< those before it
};

/// Events tell of the last batch in each slot: where the oldest one has failed, it may be for an earlier one, unless all of those
/// are known to be through: the `completed` first ones.
template <class Core>
EventFaults faults_of_events(Core& core, std::size_t submitted, std::size_t completed) {
    const std::size_t slots = core.order->slots();
    const std::size_t oldest = submitted > slots ? submitted - slots : 0;
    EventFaults faults;
    for (std::size_t batch = oldest; batch < submitted; ++batch) {
        for (std::size_t stage = 0; stage < core.plan.stages.size(); ++stage) {
            if (!core.plan.stages[stage].needs_event)
                continue;
            try {
                faults.all_done = core.order->event(stage, batch).is_done() && faults.all_done;
            } catch (...) {
                faults.first =
                    FaultPlace{static_cast<int>(stage), batch, batch == oldest && oldest > completed};
                return faults;
            }
        }
    }
    return faults;
}

/// The work that failed first, of the batches before `submitted`, where their events tell; otherwise the stage of
/// `stream`, on which the fault is known, unless several stages have been there: in one stream, or in graphs of whole steps. Then
/// it may be of any batch before `begun`. Such graphs set no events: what ran eagerly behind one may only have passed its fault on.
template <class Core>
FaultPlace find_fault(Core& core, std::size_t submitted, std::size_t completed, std::size_t begun,
                      typename Core::Ref stream, bool whole_steps) {
    const auto known = core.streams.stage_of(stream);
    const FaultPlace unknown = begun > 0 ? FaultPlace{-1, begun - 1, true} : FaultPlace{};
    // A stream is known to have failed a moment before its next event is; other stages may be at work for long.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (;;) {
        const EventFaults faults = faults_of_events(core, submitted, completed);
        const bool late = std::chrono::steady_clock::now() > limit;
        if (faults.first) {
            // What passed its fault on has failed before it, and may not be known to have.
            if (faults.all_done && !whole_steps)
                return *faults.first;
            if (faults.all_done || late)
                return {-1, faults.first->batch, true};
        } else if (!known) {
            return unknown;
        } else if (faults.all_done || late) {
            return whole_steps ? unknown : FaultPlace{static_cast<int>(*known), std::nullopt, false};
        }
        sched_yield();
    }
}

} // namespace sluice::detail
