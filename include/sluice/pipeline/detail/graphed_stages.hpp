/// \file
/// Schedule::graphed where some stages cannot be captured: each other stage's work on a batch is a graph of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/overlapped.hpp>
#include <sluice/pipeline/detail/step_graphs.hpp>

namespace sluice::detail {

/// As overlapped, on the stages' own streams and with the same waits, but that a captured stage is a launch.
template <class Core>
class GraphedStages : public EagerExecutor {
    using Shape = typename Core::Shape;
    using B = typename Core::backend;
    using Ref = typename Core::Ref;
    static constexpr std::size_t stages = Core::stages;

public:
    GraphedStages(Core& core, const GraphOptions& options) : refusals_(options.on_refusal) {
        Core::for_each_stage([&](auto stage) {
            if (!Shape::capturable[stage] || !core.template stage<stage>().options().graphed)
                return;
            const DeviceGuard<B> device(core.streams.device_of(stage));
            graphs_[stage] = std::make_unique<StepGraphs<Core>>(options);
        });
    }

    void submit(Core& core, std::size_t number, const GivenBatch<Core>& batch, const SourceHold<B>& hold) {
        for_each_stage_to_enqueue(core, [&](auto stage) {
            if (Shape::capturable[stage] && graphs_[stage] && !core.launch_blocking()) {
                call_in_order<stage>(core, number,
                                     [&](Ref stream) { replay<stage>(core, stream, number, batch); });
            } else {
                run_in_order<stage>(core, number, batch);
            }
            core.template release_batch<stage>(number, hold);
        });
    }

    void reset() noexcept {
        for (const auto& graphs : graphs_) {
            if (graphs)
                graphs->reset();
        }
    }
    template <std::size_t Index>
    void await_stage(Core& core, std::size_t number) {
        OverlappedExecutor<Core>::template await_stage<Index>(core, number);
    }

    template <class Visit>
    void for_each_capture_stream(Visit&& visit) const {
        for (std::size_t stage = 0; stage < stages; ++stage) {
            if (!graphs_[stage])
                continue;
            if (const auto stream = graphs_[stage]->capture_stream())
                visit(static_cast<int>(stage), *stream);
        }
    }
    GraphCounters counters() const noexcept {
        GraphCounters sum;
        for (const auto& graphs : graphs_) {
            if (graphs)
                sum += graphs->counters();
        }
        return refusals_.added_to(sum);
    }
    std::string first_refusal() const {
        for (const auto& graphs : graphs_) {
            if (graphs && !graphs->first_refusal().empty())
                return graphs->first_refusal();
        }
        return refusals_.first_after({});
    }

private:
    template <std::size_t Index>
    void replay(Core& core, Ref stream, std::size_t number, const GivenBatch<Core>& batch) {
        constexpr bool reads_batch = Shape::bindings.reads_batch[Index];
        const auto eager = [&] { batch.ops->run[Index](core, stream, number, batch.value); };
        std::uint64_t batch_number = 0;
        if constexpr (reads_batch) {
            // One that is not copied may be read where it is.
            const void* const place = batch.ops->copied_bytes > 0 ? nullptr : batch.value;
            batch_number = batch_numbers_.number_of(*batch.ops, batch.value, place);
            if (batch_number == 0) {
                refusals_.untold_batches();
                eager();
                return;
            }
        }
        StepGraphs<Core>& graphs = *graphs_[Index];
        // After so many batches each slot meets each lane again.
        const std::size_t phase = number % (core.order->slots() * core.lanes(Index));
        graphs.new_key(core, phase, 1).push_back(batch_number);
        const auto launch = [&] {
            if (core.times) [[unlikely]]
                core.times->begin(Index, number, stream);
            core.enter_stage(Index, number);
            if constexpr (Core::is_checked)
                checked::graph_batch(number);
            graphs.run(
                core, stream, [&](Ref origin) { batch.ops->run[Index](core, origin, number, batch.value); },
                eager,
                [&](KeyBytes& kind) {
                    if constexpr (!reads_batch) {
                        return false;
                    } else {
                        kind.leave_out_addresses();
                        return batch.ops->append_key(kind, batch.value);
                    }
                },
                [&] { core.enter_stage(Index, number); });
            core.leave_stage();
            if (core.times) [[unlikely]]
                core.times->end(Index, number, stream);
        };
        if (core.streams.several_devices()) {
            const DeviceGuard<B> device(core.streams.device_of(Index));
            launch();
        } else {
            launch();
        }
    }

    std::array<std::unique_ptr<StepGraphs<Core>>, stages> graphs_; // of the captured stages
    BatchNumbers<> batch_numbers_;
    Refusals refusals_;
};

} // namespace sluice::detail
