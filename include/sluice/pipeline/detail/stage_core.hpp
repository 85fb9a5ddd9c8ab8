/// \file
/// The stages of a pipeline with their slots, streams and marks, and the one place that calls a stage.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/batch_ops.hpp>
#include <sluice/pipeline/detail/core_base.hpp>
#include <sluice/pipeline/detail/cpu_stages.hpp>
#include <sluice/pipeline/detail/faults.hpp>
#include <sluice/pipeline/detail/range.hpp>
#include <sluice/pipeline/detail/shape.hpp>
#include <sluice/pipeline/detail/slots_number.hpp>
#include <sluice/pipeline/detail/stage_checks.hpp>
#include <sluice/pipeline/detail/stage_order.hpp>
#include <sluice/pipeline/detail/stage_streams.hpp>
#include <sluice/pipeline/detail/stage_stress.hpp>
#include <sluice/pipeline/detail/stage_times.hpp>
#include <sluice/pipeline/source.hpp>

namespace sluice::detail {

/// What all schedules share: the stages and slots with their types.
template <class ShapeOfPipeline>
class StageCore final : public CoreBase<typename ShapeOfPipeline::backend> {
    using Base = CoreBase<typename ShapeOfPipeline::backend>;
    using Base::current_stage_;
    using Base::launch_blocking_;

public:
    using Shape = ShapeOfPipeline;
    using backend = typename Shape::backend;
    using Ref = BasicStreamRef<backend>;
    static constexpr std::size_t stages = Shape::stages;
    static constexpr bool is_checked = IsChecked<backend>::value;
    using Base::enter_stage;
    using Base::order;
    using Base::streams;
    using Base::times;

    StageCore(typename Shape::StageTypes all, typename Shape::Makers& makers, Schedule schedule, int slots,
              bool launch_blocking)
        : Base(PlanTables<Shape>::data, schedule, launch_blocking), stages_(std::move(all)) {
        if (slots < 1)
            throw Error("a pipeline needs at least 1 slot between two stages, got " + std::to_string(slots));
        for_each_stage([&](auto index) { add_stage<index>(schedule); });
        for_each_stage([&](auto index) {
            constexpr int maker = Shape::bindings.stages[index].maker;
            if constexpr (maker >= 0 && Shape::sound) {
                const DeviceGuard<backend> device(this->streams.device_of(index));
                constexpr auto m = static_cast<std::size_t>(maker);
                if constexpr (is_checked)
                    checks.make_slots(std::get<m>(slots_), std::get<m>(makers), slots, name(index));
                else
                    std::get<m>(slots_).make(std::get<m>(makers), slots, name(index));
            }
        });
        order.emplace(static_cast<std::size_t>(slots), streams, this->plan);
        if constexpr (is_checked) {
            name_streams();
            for_each_stage([&](auto index) { poison_new_slots<index>(*this); });
        }
        if (streams.several_devices()) {
            connect_devices();
            plain_ = false;
        }
    }
    /// Calls `visit(std::integral_constant<std::size_t, I>)` for each stage, in order.
    template <class Visit>
    static constexpr void for_each_stage(Visit&& visit) {
        [&]<std::size_t... Is>(std::index_sequence<Is...>) {
            (visit(std::integral_constant<std::size_t, Is>{}), ...);
        }
        (std::make_index_sequence<stages>{});
    }

    const std::string& name(std::size_t stage) const noexcept { return *names_[stage]; }

    /// Calls stage I for batch `number`, with a stream to work on; a CPU stage on a thread, after what `add_wait` told.
    template <std::size_t Index, class Batch>
    void run(Ref stream, std::size_t number, const Batch& batch) {
        const Range range(*names_[Index]);
        enter_stage(Index, number);
        [[maybe_unused]] const auto scope = scope_of(Index, stream, number);
        if constexpr (Shape::template runs_aside<Index>) {
            cpu_stages.template run<Index>(*this, number, batch);
            if (launch_blocking_)
                cpu_stages.drain(Index);
        } else {
            const auto call = [&] {
                if constexpr (Shape::template called_as_task<Index>) {
                    using Kept = KeptBatch<Batch, Shape::bindings.reads_batch[Index]>;
                    backend::enqueue(stream.get(), [this, stream, number, kept = Kept(batch)] {
                        [[maybe_unused]] const auto within = scope_of(Index, stream, number);
                        try {
                            invoke<Index>(Nothing{}, order->slot_of(number), kept.get());
                        } catch (...) {
                            cpu_stages.fault().set(std::current_exception(), Index, number);
                            throw; // Streams that wait for this must fail, too.
                        }
                    });
                } else {
                    invoke<Index>(stream, order->slot_of(number), batch);
                }
            };
            if constexpr (is_checked)
                poison_own_slot<Index>(*this, stream, number);
            if (plain_) [[likely]]
                call();
            else
                call_watched(stream, Index, number, call);
            backend::check_launches();
            if constexpr (is_checked) {
                tell<Index>(stream, number, batch);
                poison_read_slots<Index>(*this, stream, number);
            }
            if (launch_blocking_)
                stream.sync();
        }
        current_stage_ = -1;
    }

    /// Tells what stage I's work on batch `number` reads and writes, which `stream`, or a thread's, has been handed.
    template <std::size_t Index, class Stream, class Batch>
    void tell(Stream stream, std::size_t number, const Batch& batch) requires is_checked {
        if (!checks.on)
            return;
        checks.handed.clear();
        const std::size_t slot = order->slot_of(number);
        const auto add = [&](auto position) {
            constexpr int from = Shape::bindings.stages[Index].from[position];
            if constexpr (from == from_batch) {
                checks.add_batch(batch);
            } else {
                checks.handed.push_back({&argument<Index, position>(slot, batch),
                                         {},
                                         checked::Op::slot,
                                         static_cast<std::size_t>(from) == Index});
            }
        };
        [&]<std::size_t... Ps>(std::index_sequence<Ps...>) {
            (add(std::integral_constant<std::size_t, Ps>{}), ...);
        }
        (std::make_index_sequence<Shape::bindings.stages[Index].count>{});
        if constexpr (requires { std::get<Index>(stages_).declared().all(); })
            checks.add_declared(std::get<Index>(stages_).declared().all());
        checked::stage_called(checked::key_of(stream.get()), checks.handed.data(), checks.handed.size(),
                              !SeesWrites<backend>::value);
    }
    /// Within it, work is that of stage `stage` on batch `number`.
    auto scope_of([[maybe_unused]] std::size_t stage, [[maybe_unused]] Ref stream,
                  [[maybe_unused]] std::size_t number) {
        if constexpr (is_checked)
            return checked::StageScope(checks.labels[stage], number, checked::key_of(stream.get()));
        else
            return Nothing{};
    }

    /// Has it noted when the stages work on the last `batches` batches.
    void note_times(int batches) {
        times.emplace(stages, batches);
        plain_ = false;
    }

    /// The call itself: with the stream, if the stage takes one, and what the stage reads and writes.
    template <std::size_t Index, class Stream, class Batch>
    void invoke(Stream stream, std::size_t slot, const Batch& batch) {
        auto& callable = std::get<Index>(stages_).callable();
        [&]<std::size_t... Ps>(std::index_sequence<Ps...>) {
            using Function = std::remove_reference_t<decltype(callable)>;
            if constexpr (Shape::template is_cpu<Index>) {
                constexpr bool fits =
                    std::invocable<Function&, decltype(argument<Index, Ps>(slot, batch))...>;
                static_assert(
                    fits || !Shape::sound,
                    "sluice::Pipeline: a CPU stage's callable does not take the batch that is submitted, "
                    "or what earlier stages make");
                if constexpr (fits)
                    callable(argument<Index, Ps>(slot, batch)...);
            } else {
                constexpr bool fits =
                    std::invocable<Function&, Stream, decltype(argument<Index, Ps>(slot, batch))...>;
                static_assert(
                    fits || !Shape::sound,
                    "sluice::Pipeline: a stage's callable must take (stream, const Batch&, const In&..., "
                    "Out&): the batch that is submitted, what earlier stages make, and last its own slot");
                if constexpr (fits)
                    callable(stream, argument<Index, Ps>(slot, batch)...);
            }
        }
        (std::make_index_sequence<Shape::bindings.stages[Index].count>{});
    }

    /// Tells the batch's source that stage I reads it.
    template <std::size_t Index>
    void release(std::size_t number, const SourceHold<backend>& hold) {
        if constexpr (Shape::bindings.reads_batch[Index]) {
            if (!hold)
                return;
            if constexpr (Shape::aside[Index]) {
                // A stream of no stage's, which may wait for the thread.
                order->wait(spare_stream(), Index, number);
                hold.release(spare_stream());
            } else {
                hold.release(streams.of(Index, number));
            }
        }
    }

    void release_batch(std::size_t stage, std::size_t number, const SourceHold<backend>& hold) override {
        for_each_stage([&](auto index) {
            if (index == stage)
                release<index>(number, hold);
        });
    }
    void add_wait(std::size_t stage, std::size_t batch) override {
        if constexpr (Shape::any_aside)
            cpu_stages.add_wait(order->wait_of(stage, batch));
    }
    /// Waits on the calling thread until stage `stage`, which runs on threads, is through batch `number`.
    void await_on_thread(std::size_t stage, std::size_t number) {
        if constexpr (Shape::any_aside)
            (void)cpu_stages.await(order->wait_of(stage, number), streams);
    }

    /// Waits for all work, whatever becomes of it.
    void drain() noexcept {
        // Streams may wait for threads, and threads for streams: neither needs this one to go on.
        cpu_stages.drain();
        streams.drain();
        // Before the semaphores that it waits for count from 0 again.
        if (spare_) {
            try {
                spare_->sync();
            } catch (...) {
                // The streams of the stages report what failed before.
            }
        }
    }
    void forget_faults() noexcept {
        cpu_stages.forget_faults();
        streams.clear_failures();
        if (order)
            order->reset();
        current_stage_ = -1;
        follows = false;
    }

    std::uint64_t slots_number() override { return slots_number_.of(slots_); }
    bool wants_graphs(std::size_t stage) const noexcept override { return wants_graphs_[stage]; }

    template <std::size_t Index>
    auto& slot(std::size_t number) {
        constexpr int maker = Shape::bindings.stages[Index].maker;
        return std::get<static_cast<std::size_t>(maker)>(slots_)[order->slot_of(number)];
    }
    template <std::size_t Index>
    auto& stage() {
        return std::get<Index>(stages_);
    }

    /// Whether the next stage that is called comes right behind the one before it on the same stream.
    bool follows = false;
    [[no_unique_address]] std::conditional_t<is_checked, StageChecks<stages>, NoStageChecks> checks;

private:
    struct Nothing {};

    std::size_t lanes_of_threads([[maybe_unused]] std::size_t stage) const noexcept override {
        if constexpr (Shape::any_aside)
            return cpu_stages.lanes(stage);
        else
            return 1;
    }

    void name_streams() {
        for_each_stage([&](auto index) {
            constexpr bool is_cpu = Shape::template is_cpu<index>;
            const std::size_t lanes = Shape::aside[index] ? 0 : streams.lanes(index);
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                checked::name_stream(checked::key_of(streams.of(index, lane).get()), name(index).c_str(),
                                     lanes > 1 ? static_cast<int>(lane) : -1, is_cpu);
            }
        });
    }

    // Calls a stage on its device, and notes when.
    template <class Call>
    void call_watched(Ref stream, std::size_t stage, std::size_t number, Call& call) {
        const DeviceGuard<backend> device(streams.device_of(stage));
        const auto timed = times ? times->begin_work(stage, number, stream, follows) : TimedWork::not_at_all;
        call();
        if (timed != TimedWork::not_at_all)
            times->end_work(timed, stage, number, stream);
    }

    // A stream that no stage runs on.
    Ref spare_stream() {
        if (!spare_)
            spare_.emplace();
        return *spare_;
    }

    template <std::size_t Index>
    void add_stage(Schedule schedule) {
        auto& stage = std::get<Index>(stages_);
        names_[Index] = &stage.name();
        if constexpr (is_checked)
            checks.labels[Index] = checked::stage_label(stage.name().c_str());
        const auto& options = stage.options();
        wants_graphs_[Index] = options.graphed;
        if constexpr (Shape::template is_cpu<Index> || Shape::template runs_aside<Index>) {
            if (options.stream) {
                throw Error("stage '" + stage.name() +
                            "': a CPU stage has threads of its own, and was given a stream");
            }
        }
        if constexpr (Shape::template runs_aside<Index>) {
            require_lanes(stage.name(), options.lanes);
            cpu_stages.start(Index, schedule == Schedule::serial ? 1 : options.lanes);
            streams.add_without_stream();
        } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(options)>, StageOptions<backend>>) {
            streams.add(stage.name(), options);
        } else {
            // A CPU stage, whose options are the Host backend's whatever the pipeline's.
            streams.add(stage.name(), StageOptions<backend>{.priority = options.priority,
                                                            .device = options.device,
                                                            .lanes = options.lanes});
        }
    }

    // Stages may read what lies on another device, and the next write there.
    void connect_devices() {
        if constexpr (requires { backend::enable_peer_access(0, 0); }) {
            for (std::size_t i = 0; i < stages; ++i) {
                for (std::size_t j = 0; j < i; ++j) {
                    const int to = streams.device_of(i), from = streams.device_of(j);
                    if (!Shape::bindings.reads[i][j] || to == from)
                        continue;
                    backend::enable_peer_access(to, from);
                    backend::enable_peer_access(from, to);
                }
            }
        }
    }

    template <std::size_t Index, std::size_t Position, class Batch>
    decltype(auto) argument(std::size_t slot, const Batch& batch) {
        constexpr int from = Shape::bindings.stages[Index].from[Position];
        if constexpr (from == from_batch) {
            return (batch);
        } else {
            constexpr int maker = Shape::bindings.stages[static_cast<std::size_t>(from)].maker;
            return (std::get<static_cast<std::size_t>(maker)>(slots_)[slot]);
        }
    }

    template <class Indices>
    struct SlotTuple;
    template <std::size_t... Ms>
    struct SlotTuple<std::index_sequence<Ms...>> {
        using type = std::tuple<SlotsOf<typename Shape::template Made<Ms>>...>;
    };

    using AllSlots = typename SlotTuple<std::make_index_sequence<Shape::makers>>::type;

    typename Shape::StageTypes stages_;
    std::array<const std::string*, stages> names_{};
    AllSlots slots_;
    SlotsNumber<Shape, AllSlots> slots_number_;
    std::array<bool, stages> wants_graphs_{};
    bool plain_ = true; // Whether a stage is called on the current device, and its times are not noted.
    std::optional<BasicStream<backend>> spare_;

public:
    /// Last: its threads end before anything that they use goes.
    CpuStages<Shape> cpu_stages;
};

} // namespace sluice::detail
