// Schedule::graphed where some stages cannot be captured: each other stage's work on a batch is a graph of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/core/executor.hpp>
#include <sluice/pipeline/detail/core/step_graphs.hpp>

namespace sluice::detail {

/// As overlapped, on the stages' own streams and with the same waits, but that a captured stage is a launch.
template <Backend B>
class GraphedStages final : public Executor<B> {
    using Core = StageCore<B>;
    using Ref = BasicStreamRef<B>;

public:
    GraphedStages(Core& core, const GraphOptions& options)
        : graphs_(core.stages()), too_many_(core.stages()), capacity_(options.capacity),
          refusals_(options.on_refusal) {
        for (std::size_t stage = 0; stage < core.stages(); ++stage) {
            if (!core.plan.stages[stage].capturable || !core.wants_graphs(stage))
                continue;
            GraphOptions own = options;
            if (core.rates.any()) {
                const std::size_t ways = core.slots.ways_of(core.plan, core.rates, stage) * core.lanes(stage);
                too_many_[stage] = ways > options.capacity ? ways : 0;
                if (ways > options.capacity)
                    continue;              // Some would be launched, in turns with what runs eagerly.
                if (own.give_up_after > 0) // All are new until the first comes again.
                    own.give_up_after = larger(own.give_up_after, 2 * ways);
            }
            const DeviceGuard<B> device(core.streams.device_of(stage));
            graphs_[stage] = make_owned<StepGraphs<B>>(own);
            graphs_[stage]->set_stages(core, stage, stage);
        }
    }

    void submit(Core& core, std::size_t number, const GivenBatch<B>& batch,
                const SourceHold<B>& hold) override {
        core.enqueue_each(number, [&](std::size_t stage) {
            if (graphs_[stage] && !core.launch_blocking()) {
                core.call_in_order(stage, number,
                                   [&](Ref stream) { replay(core, stage, stream, number, batch); });
            } else {
                if (too_many_[stage] > 0 && !core.launch_blocking())
                    tell_too_many(core, stage);
                else
                    ++(graphs_[stage] ? refusals_.eager().blocking : refusals_.eager().opted_out);
                core.run_in_order(stage, number, batch);
            }
            core.release_batch(stage, number, hold);
        });
    }

    void reset() noexcept override {
        for (const auto& graphs : graphs_) {
            if (graphs)
                graphs->reset();
        }
    }
    void await_stage(Core& core, std::size_t stage, std::size_t number) override {
        core.await_mark(stage, number);
    }

    void for_each_capture_stream(const CallRef<void(int, Ref)>& visit) const override {
        for (std::size_t stage = 0; stage < graphs_.size(); ++stage) {
            if (!graphs_[stage])
                continue;
            if (const auto stream = graphs_[stage]->capture_stream())
                visit(static_cast<int>(stage), *stream);
        }
    }
    GraphCounters counters() const noexcept override {
        GraphCounters sum;
        for (const auto& graphs : graphs_) {
            if (graphs)
                sum += graphs->counters();
        }
        return refusals_.added_to(sum);
    }
    std::string first_refusal() const override {
        for (const auto& graphs : graphs_) {
            if (graphs && !graphs->first_refusal().empty())
                return graphs->first_refusal();
        }
        return refusals_.first_after({});
    }

private:
    // A number for what the stage is handed: after so many batches each slot meets each lane again.
    static std::size_t phase_of(const Core& core, std::size_t stage, std::size_t number) {
        if (!core.rates.any()) [[likely]]
            return number % (core.order->slots() * core.lanes(stage));
        return core.slots.phase_of(core.plan, core.rates, stage, number) * core.lanes(stage) +
               number % core.lanes(stage);
    }
    void tell_too_many(const Core& core, std::size_t stage) {
        ++refusals_.eager().no_place;
        if (too_many_[stage] == told)
            return;
        refusals_.tell("capture refused: stage '" + core.name(stage) + "' meets turns and slots in " +
                       std::to_string(too_many_[stage]) + " ways, each a graph of its own, and " +
                       std::to_string(capacity_) +
                       " are kept; expected no more (GraphOptions::capacity), or "
                       "StageOptions{.graphed = false}");
        too_many_[stage] = told;
    }
    void replay(Core& core, std::size_t stage, Ref stream, std::size_t number, const GivenBatch<B>& batch) {
        const bool reads_batch = core.plan.stages[stage].reads_batch;
        const auto eager = [&] { core.run(stage, stream, number, batch); };
        std::uint64_t batch_number = 0;
        if (number < core.slots.first_rows()) {
            eager(); // Batches before are missing.
            return;
        }
        if (reads_batch) {
            // One that is not copied may be read where it is.
            const void* const place = batch.ops->copied_bytes > 0 ? nullptr : batch.value;
            batch_number = batch_numbers_.number_of(*batch.ops, batch.value, place);
            if (batch_number == 0) {
                refusals_.untold_batches();
                eager();
                return;
            }
        }
        StepGraphs<B>& graphs = *graphs_[stage];
        const std::size_t phase = phase_of(core, stage, number);
        graphs.new_key(core, phase, 1).push_back(batch_number);
        const auto launch = [&] {
            if (core.times) [[unlikely]]
                core.times->begin(stage, number, stream);
            core.enter_stage(stage, number);
            core.checks.graph_begins_with(number);
            graphs.run(
                core, stream,
                [&](Ref origin) {
                    core.run(stage, origin, number, batch);
                    graphs.stage_captured(stage, number, origin);
                },
                eager,
                [&](KeyBytes& kind) {
                    if (!reads_batch)
                        return false;
                    kind.leave_out_addresses();
                    return batch.ops->append_key(kind, batch.value);
                },
                [&] { core.enter_stage(stage, number); });
            core.leave_stage();
            if (core.times) [[unlikely]]
                core.times->end(stage, number, stream);
        };
        if (core.streams.several_devices()) {
            const DeviceGuard<B> device(core.streams.device_of(stage));
            launch();
        } else {
            launch();
        }
    }

    static constexpr std::size_t told = ~std::size_t{0};
    List<Owned<StepGraphs<B>>> graphs_; // of the captured stages
    List<std::size_t> too_many_;        // graphs that a stage without any would need, `told`, or 0
    std::size_t capacity_;
    BatchNumbers batch_numbers_;
    Refusals refusals_;
};

} // namespace sluice::detail
