// The stages of a pipeline with their slots, streams and marks, whatever their types, and the one place that calls a stage.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include <sluice/backend/detail/calling_stage.hpp>
#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/detail/owned.hpp>
#include <sluice/backend/device.hpp>
#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/boundary/shape.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/detail/core/checks.hpp>
#include <sluice/pipeline/detail/core/cpu_stages.hpp>
#include <sluice/pipeline/detail/core/key_numbers.hpp>
#include <sluice/pipeline/detail/core/range.hpp>
#include <sluice/pipeline/detail/core/slot_table.hpp>
#include <sluice/pipeline/detail/core/stage_order.hpp>
#include <sluice/pipeline/detail/core/stage_streams.hpp>
#include <sluice/pipeline/detail/core/stage_times.hpp>
#include <sluice/pipeline/detail/core/work_ends.hpp>
#include <sluice/pipeline/pipeline_options.hpp>

namespace sluice::detail {

/// What went wrong on a pipeline's threads for the earliest batch, and of its stages in the first one. Any thread may use it; what it is
/// may still change until no thread is at work.
class ThreadFault {
public:
    bool known() const noexcept { return batch() != none; }

    void set(std::exception_ptr thrown, std::size_t stage, std::size_t batch) noexcept {
        const std::lock_guard lock(mutex_);
        if (known() && !(batch < this->batch() || (batch == this->batch() && stage < stage_)))
            return;
        thrown_ = std::move(thrown);
        stage_ = stage;
        batch_.store(batch, std::memory_order_relaxed);
    }
    /// No thread is at work.
    void clear() noexcept {
        thrown_ = nullptr;
        batch_.store(none, std::memory_order_relaxed);
    }
    std::size_t batch() const noexcept { return batch_.load(std::memory_order_relaxed); }
    /// For when no thread is at work.
    /// @{
    std::size_t stage() const noexcept { return stage_; }
    const std::exception_ptr& thrown() const noexcept { return thrown_; }
    /// Whether there is one, for a batch before `other`, or for that batch in a stage before `its_stage`.
    bool comes_before(int its_stage, std::size_t other) const noexcept {
        return known() && (batch() < other || (batch() == other && static_cast<int>(stage_) < its_stage));
    }
    /// @}

private:
    static constexpr std::size_t none = (std::numeric_limits<std::size_t>::max)();

    std::atomic<std::size_t> batch_{none};
    std::mutex mutex_;
    std::exception_ptr thrown_;
    std::size_t stage_ = 0;
};

/// What all schedules share.
template <Backend B>
class StageCore {
public:
    using Ref = BasicStreamRef<B>;
    using Checks = PipelineChecks<B>;

    StageCore(const PlanData& plan_of_stages, const PipelineSetup<B>& setups, const PipelineOptions& options);
    StageCore& operator=(StageCore&&) = delete;

    /// Calls a stage for batch `number`, with a stream to work on; one that runs on threads, on a thread after `waits`.
    void run(std::size_t stage, Ref stream, std::size_t number, const GivenBatch<B>& batch,
             const ThreadWaits& waits = {});
    /// Enqueues a stage's work on a batch, after all that it must come after, and its mark: `work(stream)` does it.
    template <class Work>
    void call_in_order(std::size_t stage, std::size_t number, Work&& work);
    /// The same with a call of the stage.
    void run_in_order(std::size_t stage, std::size_t number, const GivenBatch<B>& batch) {
        call_in_order(stage, number, [&](Ref stream) { run(stage, stream, number, batch); });
    }
    /// Whether nothing but a call is to be done for a stage: see `PlainSteps`.
    bool is_plain(std::size_t stage) const noexcept { return entries_[stage].is_plain; }
    void* callable(std::size_t stage) const noexcept { return entries_[stage].callable; }
    /// What stages are handed for a batch.
    void* const* slots_for(std::size_t number) const noexcept {
        return slots.row(number, order->slot_of(number));
    }
    /// The slots that let stages overlap: there are more where batches before are taken as well.
    std::size_t free_slots() const noexcept { return slots.count() - (plan.most_window - 1); }
    /// Calls `enqueue(stage)` for each stage that runs for a batch, in their order, or in another one where stress wants that.
    template <class Enqueue>
    void enqueue_each(std::size_t number, Enqueue&& enqueue) {
        const auto if_it_runs = [&](std::size_t stage) {
            if (rates.runs(stage, number))
                enqueue(stage);
        };
        if (checks.enqueue_in_other_order(*this, if_it_runs))
            return;
        for (std::size_t stage = 0; stage < stages(); ++stage)
            if_it_runs(stage);
    }
    /// Where what a maker has made for a batch is.
    void* slot_at(std::size_t maker, std::size_t number) const noexcept {
        return slots.at(maker, order->slot_of(rates.content_of(maker, number)));
    }
    /// Calls `visit(stage, batch)` for all that a stage's work on batch `number` must come after.
    template <class Visit>
    void for_each_wait(std::size_t stage, std::size_t number, Visit&& visit) const;
    /// Calls `visit(stage, batch)` for all that a thread waits for before it calls a stage.
    template <class Visit>
    void for_each_thread_wait(std::size_t stage, std::size_t number, const ThreadWaits& waits,
                              Visit&& visit) const;

    /// Tells the batch's source that a stage reads it, if it does.
    void release_batch(std::size_t stage, std::size_t number, const SourceHold<B>& hold);
    /// Waits on the calling thread for the mark that a stage sets on its own stream, or its thread.
    void await_mark(std::size_t stage, std::size_t number);
    bool mark_is_reached(std::size_t stage, std::size_t number);
    /// The end of a stage's run on a batch, or of a later one, if it is known and tells that sooner than the last of its `marks`.
    const BasicEvent<B>* sooner_end(std::size_t stage, std::size_t number, std::size_t marks) const noexcept {
        return ends.before_mark(stage, rates.run_of(stage, number), marks, lanes(stage));
    }
    /// Enqueues a mark of a stage's end where the caller waits for such.
    void mark_end(std::size_t stage, std::size_t number) {
        if (ends.to_mark > 0) [[unlikely]]
            ends.mark(stage, rates.run_of(stage, number), streams.of(stage, number));
    }

    /// Waits for all threads' work, and for all work, whatever becomes of it.
    /// @{
    void drain_threads() const noexcept;
    /// Waits for all work, and, if `failed`, for no semaphore that will not be signalled: whether it has ended such waits.
    bool drain(bool failed = true) noexcept;
    /// @}
    /// What has failed is forgotten. No batch is in flight.
    void forget_faults() noexcept;

    /// Has it noted when the stages work on the last `batches` batches, and graphs of whole steps, if there will be any.
    void note_times(int batches, bool whole_steps);

    std::size_t stages() const noexcept { return plan.stages.size(); }
    const std::string& name(std::size_t stage) const noexcept { return *entries_[stage].name; }
    /// Whether a stage may be captured, as far as its options say.
    bool wants_graphs(std::size_t stage) const noexcept { return entries_[stage].wants_graphs; }
    /// As `StageOptions::keeps_slot`.
    bool keeps_slot(std::size_t stage) const noexcept { return entries_[stage].keeps_slot; }
    /// Batches that a stage works on at the same time.
    std::size_t lanes(std::size_t stage) const noexcept {
        return plan.stages[stage].aside ? threads_[stage].count() : streams.lanes(stage);
    }
    /// CPU stages that read what other stages' callables set in their slots on the host: those are called again for a slot once these
    /// have been through the batch before.
    const List<std::size_t>& host_readers() const noexcept { return host_readers_; }
    /// A number for the state of the slots on the host.
    std::uint64_t slots_number() { return slots_number_->get(); }
    /// What is known to have gone wrong on a thread.
    const ThreadFault& thread_fault() const noexcept { return fault_; }
    bool launch_blocking() const noexcept { return launch_blocking_; }

    /// The stage that is being called, or -1, and for which batch.
    /// @{
    int current_stage() const noexcept { return current_stage_; }
    std::size_t current_batch() const noexcept { return current_batch_; }
    void enter_stage(std::size_t stage, std::size_t batch) noexcept {
        current_stage_ = static_cast<int>(stage);
        current_batch_ = batch;
    }
    void leave_stage() noexcept { current_stage_ = -1; }
    /// Whether the stage's callable has returned, so that what was thrown is of its work. Says so once.
    bool was_awaiting_work() noexcept { return std::exchange(awaiting_work_, false); }
    /// Its name; null for none. As `CallingPipeline` wants it.
    static const std::string* stage_of(const void* core) {
        const auto& self = *static_cast<const StageCore*>(core);
        return self.current_stage_ < 0 ? nullptr : &self.name(static_cast<std::size_t>(self.current_stage_));
    }
    /// @}

    StageRates rates;
    const PlanData& plan; // all waits where stages run at several rates
    [[no_unique_address]] Checks checks;
    StageStreams<B> streams;
    SlotTable slots;
    Maybe<StageOrder<B>> order;
    Maybe<StageTimes<B>> times; // where they are noted
    /// Whether the next stage that is called comes right behind the one before it on the same stream.
    bool follows = false;
    // This and the first ones below are what each submit looks at: one line of memory.
    alignas(64) StageEnds<B> ends;

private:
    struct Entry {
        void* callable;
        const std::string* name;
        /// It has one stream, on the current device, neither waits for a thread nor is waited for by one, and is not watched.
        bool is_plain;
        bool wants_graphs;
        bool keeps_slot;
    };

    void add_stage(const StageSetup<B>& stage, Schedule schedule);
    void make_slots(std::size_t stage, const SlotSetup& setup);
    void find_host_readers();
    void connect_devices();
    void watch_calls();

    void await_inputs(std::size_t stage, std::size_t number, Ref stream);
    void call(std::size_t stage, Ref stream, std::size_t number, const GivenBatch<B>& batch);
    void call_watched(std::size_t stage, Ref stream, std::size_t number, const GivenBatch<B>& batch);
    void hand_to_thread(std::size_t stage, std::size_t number, const GivenBatch<B>& batch,
                        const ThreadWaits& waits);
    void call_on_thread(std::size_t stage, std::size_t number, const ThreadWaits& waits,
                        typename StageCall<B>::OnThread on_thread, const void* batch);
    /// `told`: the checker knows of the wait, and learns nothing more of it.
    bool await_on_thread(std::size_t stage, std::size_t number, std::size_t called_for, bool told);
    bool is_behind_fault(std::size_t number) const noexcept;
    Ref spare_stream();

    // Streams that are threads have CPU stages among them like any others.
    static constexpr bool has_threads = SemaphoreBackend<B> && !streams_are_threads<B>;

    std::size_t current_batch_ = 0;
    int current_stage_ = -1;
    bool launch_blocking_;
    bool awaiting_work_ = false; // Under `launch_blocking_`.
    bool plain_ = true; // Whether a stage is called on the current device, and its times are not noted.
    ThreadFault fault_;
    List<Entry> entries_;
    List<std::size_t> host_readers_;
    Maybe<SlotsNumber> slots_number_;
    Maybe<BasicStream<B>> spare_;
    // Last: they end before anything that they use goes.
    List<CpuThreads<B>> threads_;
};

} // namespace sluice::detail

#include <sluice/pipeline/detail/core/stage_core.inl>
#include <sluice/pipeline/detail/core/stage_setup.inl>
