// Which multiprocessors the stages of a pipeline have.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/detail/core/faults.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace sluice::detail {

/// How one device is split.
struct SharedDevice {
    int device = 0;
    int multiprocessors = 0;
    int unit = 0;          // They are shared out in groups of so many.
    int taken = 0;         // By stages that have asked.
    bool has_rest = false; // Whether there are stages on it that have not.
};

/// What a stage has of its device.
struct StageShare {
    int device = -1; // -1: it is on no stream of the pipeline's
    int asked = 0;
    int multiprocessors = 0;
    void* share = nullptr;
};

/// Throws `Error` for a stage that can have no share of its own.
inline void require_share(const std::string& stage, int asked, bool is_cpu, bool on_callers_stream) {
    const char* const why = asked < 0 ? "; expected how many it is to have for itself, or 0 for none"
                            : is_cpu  ? ", and a CPU stage runs on none"
                            : on_callers_stream
                                ? ", and its stream is the caller's, which runs where the caller made it"
                                : nullptr;
    if (asked != 0 && why != nullptr)
        throw Error("stage '" + stage + "': StageOptions::multiprocessors is " + std::to_string(asked) + why);
}

/// What a stage has that asks for `asked`. Throws `Error` where there are too few.
inline int take_share(SharedDevice& of, const std::string& stage, int asked) {
    const int room = of.multiprocessors - of.taken - (of.has_rest ? 1 : 0);
    const int own = asked > room ? asked : (asked + of.unit - 1) / of.unit * of.unit;
    if (own > room) {
        throw Error("stage '" + stage + "' asks for " + detail::counted(asked, "multiprocessor") +
                    " of its own, and can have " + std::to_string(room / of.unit * of.unit) + ": device " +
                    std::to_string(of.device) + " has " + std::to_string(of.multiprocessors) +
                    ", in groups of " + std::to_string(of.unit) +
                    (of.taken > 0 ? ", of which other stages have " + std::to_string(of.taken) : "") +
                    (of.has_rest ? ", and those that ask for none need 1" : ""));
    }
    of.taken += own;
    return own;
}

/// `StageOptions::multiprocessors` of all stages: one split a device. It ends after the streams that are made with it.
template <Backend B>
class StageShares {
public:
    StageShares& operator=(StageShares&&) = delete;
    ~StageShares() {
        if constexpr (ShareBackend<B>) {
            for (void* const share : made_) {
                if (share != nullptr)
                    B::destroy_share(share);
            }
        }
    }

    /// Throws `Error` for what a stage cannot have. Without effect under `Schedule::serial`, where no stage runs beside another
    /// one, and on backends whose devices cannot be shared.
    void share_out(const PlanData& plan, const StageSetup<B>* stages, Schedule schedule,
                   int pipelines_device) {
        of_stage_.resize(plan.stages.size());
        for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
            const StageOptions<B>& options = stages[stage].options;
            const bool is_cpu = plan.stages[stage].is_cpu || plan.stages[stage].aside;
            require_share(*stages[stage].name, options.multiprocessors, is_cpu, options.stream.has_value());
            of_stage_[stage].asked = options.multiprocessors;
            if (!plan.stages[stage].aside && !options.stream)
                of_stage_[stage].device = options.device < 0 ? pipelines_device : options.device;
        }
        if constexpr (ShareBackend<B>) {
            for (std::size_t stage = 0; schedule != Schedule::serial && stage < of_stage_.size(); ++stage) {
                if (of_stage_[stage].asked == 0 || of_stage_[stage].share != nullptr)
                    continue;
                (void)require_stage_device(*stages[stage].name, stages[stage].options, pipelines_device);
                split(of_stage_[stage].device, stages);
            }
        }
    }

    const List<SharedDevice>& devices() const noexcept { return devices_; }
    const StageShare& of(std::size_t stage) const noexcept { return of_stage_[stage]; }

private:
    void split(int device, const StageSetup<B>* stages) {
        const DeviceGuard<B> current(device);
        SharedDevice& of = devices_.push_back(
            {.device = device, .multiprocessors = B::multiprocessors(), .unit = B::share_unit()});
        for (const StageShare& own : of_stage_)
            of.has_rest = of.has_rest || (own.device == device && own.asked == 0);
        List<int> counts;
        for (std::size_t stage = 0; stage < of_stage_.size(); ++stage) {
            StageShare& own = of_stage_[stage];
            if (own.device == device && own.asked != 0)
                counts.push_back(own.multiprocessors = take_share(of, *stages[stage].name, own.asked));
        }
        std::size_t next = made_.size();
        made_.resize(next + counts.size() + 1);
        const int rest = B::create_shares(counts.data(), counts.size(), of.has_rest, made_.data() + next);
        for (StageShare& own : of_stage_) {
            if (own.device != device)
                continue;
            if (own.asked == 0)
                own.multiprocessors = rest;
            own.share = own.asked == 0 ? made_.back() : made_[next++];
        }
    }

    List<SharedDevice> devices_;
    List<StageShare> of_stage_;
    List<void*> made_;
};

} // namespace sluice::detail
