/// \file
/// Pipelines: stages that work on successive batches at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/backend/device.hpp>
#include <sluice/pipeline/detail/fit.hpp>
#include <sluice/pipeline/detail/range.hpp>
#include <sluice/pipeline/detail/step_graphs.hpp>
#include <sluice/pipeline/detail/stream_set.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/pipeline/slot_ring.hpp>
#include <sluice/pipeline/source.hpp>
#include <sluice/pipeline/stage.hpp>

namespace sluice {

/// The stages of a pipeline, first to last.
template <class... Ss>
struct Stages {
    std::tuple<Ss...> all;
    explicit Stages(Ss... stages) : all(std::move(stages)...) {}
};

/// What makes the slots between neighbouring stages, first to last: each is called as `make(int slot)` for
/// each slot of its ring, once, when the pipeline is made, and returns what the two stages exchange.
template <class... Makers>
struct Slots {
    std::tuple<Makers...> all;
    explicit Slots(Makers... makers) : all(std::move(makers)...) {}
};

/// How a pipeline runs.
struct PipelineOptions {
    Schedule schedule = Schedule::overlapped;
    /// Slots between each two neighbouring stages, at least 1. With 2, a stage fills one while the next one
    /// empties the other; more let stages of uneven duration run further ahead.
    int slots = 2;
    /// True: waits for each stage, so that a fault of its work on the device is reported with its name and
    /// batch. For looking for a fault: nothing overlaps then.
    bool attribute_faults = false;
    /// How steps are captured and kept under `Schedule::graphed`.
    GraphOptions graphs{.capacity = 64};
};

/// Runs each submitted batch through all stages, in order, once.
///
/// A pipeline is driven by one thread at a time; separate pipelines are independent of each other. It belongs
/// to the device that was current when it was made, and leaves the caller's current device as it was. After
/// the first lap over the slots, a step creates, allocates and waits for nothing. What stages refer to must outlive it.
/// It can be neither copied nor moved; a function can return a new one.
///
/// Under `Schedule::graphed` a step is one graph: stage k works on batch N-k, all of them at the same time, and the next
/// step comes after all of it. So later stages of the last batches are enqueued by `flush` or `finish`, or by the
/// submits that follow. There is an executable for each slot and each batch that is told apart: batches of a `Source`
/// by their slot, others by their value, bit by bit, which must be trivially copyable and at most 256 bytes long for
/// that (otherwise steps run eagerly, and `on_refusal` is told why): a span or a pointer, not the buffers themselves,
/// and no number that differs for every batch. With one slot, the stages of a batch are one chain and nothing lags. The
/// first and the last steps run eagerly.
///
/// A stage that throws leaves the pipeline drained and failed: the batch in hand is lost (and under `Schedule::graphed`
/// those before it that later stages have not had yet), every later call throws, and `reset` makes it usable again.
/// What a stage threw is nested in the `Error` that names the stage and the batch.
///
/// \code
/// sluice::Pipeline pipeline{sluice::Stages{copy, encode, train}, sluice::Slots{make_images, make_features}};
/// for (const auto& batch : source) pipeline.submit(batch);
/// pipeline.finish();
/// \endcode
template <class StageList, class SlotList>
class Pipeline;

template <class... Ss, class... Makers>
class Pipeline<Stages<Ss...>, Slots<Makers...>> {
public:
    using backend = typename std::tuple_element_t<0, std::tuple<Ss...>>::backend;
    static constexpr std::size_t stage_count = sizeof...(Ss);

    static_assert(sizeof...(Makers) + 1 == sizeof...(Ss),
                  "sluice::Pipeline: give one slot maker for each pair of neighbouring stages");
    static_assert((std::is_same_v<typename Ss::backend, backend> && ...),
                  "sluice::Pipeline: all stages must take streams of the same backend");

    /// Makes the streams, events and slots. Throws `Error`, and what a maker throws.
    Pipeline(Stages<Ss...> stages, Slots<Makers...> makers, PipelineOptions options = {});

    Pipeline(const Pipeline&) = delete;
    Pipeline& operator=(const Pipeline&) = delete;

    /// Enqueues what submitted batches still need, unless the pipeline has failed, and waits for the work in flight.
    ~Pipeline();

    /// Enqueues all stages for `batch` and returns.
    ///
    /// What the first stage's work reads, such as pinned memory, must stay as it is until that work is done, which an
    /// event tells that is recorded on `stream(0)` after the call, and `batch` itself if a stage refers to it later.
    /// Batches of a `Source` see to that themselves. Throws `Error`: for a stage's exception or failed call, a known
    /// fault of earlier work, or a pipeline that has failed before.
    template <class Batch>
    void submit(const Batch& batch) {
        submit_and(batch, detail::BatchKey::of_value(batch), [] {});
    }

    /// Does not compile: a batch that owns what the work reads would be gone before the work starts.
    template <class Batch>
    requires(!std::is_trivially_copyable_v<Batch>) void submit(const Batch&& batch) = delete;

    /// The same for a batch of a source: its slot is filled again once the first stage's work has read it.
    template <class Batch, Backend B>
    void submit(const SourceBatch<Batch, B>& batch) {
        static_assert(
            std::is_same_v<B, backend>,
            "sluice::Pipeline: the source is another backend's than the stages; give it SourceOptions of "
            "theirs, such as SourceOptions<Host>{}");
        if (!batch)
            throw Error("submit: the batch is empty, since its source has ended; look with `if (batch)` first");
        if constexpr (std::is_same_v<B, backend>)
            submit_held<Batch>(*batch, batch.hold());
    }
    template <class Batch, Backend B>
    void submit(SourceBatch<Batch, B>&& batch) {
        submit(std::as_const(batch));
    }
    /// The same for `*batch`.
    template <class Batch, Backend B>
    void submit(const detail::HeldBatch<Batch, B>& batch) {
        static_assert(
            std::is_same_v<B, backend>,
            "sluice::Pipeline: the source is another backend's than the stages; give it SourceOptions of "
            "theirs, such as SourceOptions<Host>{}");
        if constexpr (std::is_same_v<B, backend>)
            submit_held<Batch>(batch, detail::SourceBatchAccess::hold(batch));
    }

    /// Orders all batches submitted later after what is on `stream`, the caller's, now.
    void join(BasicStreamRef<backend> stream);

    /// Sees that all submitted batches are on their way, and orders later work on lent streams after them.
    /// Does not wait for the device. Throws `Error` for a known fault.
    void flush();

    /// The same, and orders later work on `stream`, the caller's, after them too.
    void flush(BasicStreamRef<backend> stream);

    /// Waits until all submitted batches have passed all stages. Throws `Error` for any fault of their work.
    /// The pipeline takes further batches afterwards.
    void finish();

    /// Waits for work in flight, whatever becomes of it, and starts anew: no failure, no batches, all slots
    /// free. Throws `Error` when the device is lost, as after an illegal address; then only a new process
    /// helps.
    void reset();

    /// Batches that have been submitted since the pipeline was made or reset.
    std::size_t submitted() const noexcept { return submitted_; }

    /// Whether a failure has been thrown that `reset` has not cleared.
    bool failed() const noexcept { return !failure_.empty(); }

    const PipelineOptions& options() const noexcept { return options_; }

    /// What became of the steps' graphs; all 0 under other schedules.
    GraphCounters graph_counters() const noexcept { return graphs_.counters(); }

    /// The stream that stage `index` is handed, the first one's under `Schedule::serial`. What the caller enqueues there
    /// comes between that stage's work for the batches before and after, but not under `Schedule::graphed`: replays, on
    /// the first captured stage's stream, lag behind by a batch a stage. Use `join` and `flush` there. Throws
    /// `Error` where there is no such stage.
    BasicStreamRef<backend> stream(std::size_t index) const {
        if (index >= stage_count) {
            throw Error("the stream of stage " + std::to_string(index) + " was asked for, of a pipeline of " +
                        std::to_string(stage_count) + " stages, counted from 0");
        }
        return streams_[index];
    }

private:
    using StageTuple = std::tuple<Ss...>;
    using MakerTuple = std::tuple<Makers...>;
    template <std::size_t Index>
    using SlotOf = typename detail::SlotMadeBy<std::tuple_element_t<Index, MakerTuple>>::type;

    // Marks the pipeline as in use, on its device, for the length of a call.
    class Call {
    public:
        Call(Pipeline& pipeline, const char* name)
            : pipeline_(pipeline), device_(pipeline.streams_.device()) {
            if (pipeline.in_use_.exchange(true, std::memory_order_acquire)) {
                throw Error(
                    std::string(name) +
                    ": the pipeline is in use, by another thread or by this call's own stage; drive a "
                    "pipeline from one thread, and not from within its stages");
            }
        }
        Call(const Call&) = delete;
        Call& operator=(const Call&) = delete;
        ~Call() { pipeline_.in_use_.store(false, std::memory_order_release); }

    private:
        Pipeline& pipeline_;
        DeviceGuard<backend> device_;
    };

    template <class Batch>
    void submit_held(const Batch& batch, detail::SourceHold<backend> hold) {
        struct Done {
            detail::SourceHold<backend> hold;
            ~Done() { hold.done(); }
        } const done{hold};
        submit_and(batch, detail::BatchKey::of_place(batch), [&] { hold.release(streams_[0]); });
    }
    template <class Batch, class AfterFirst>
    void submit_and(const Batch& batch, const detail::BatchKey& key, AfterFirst&& after_first);
    template <std::size_t Index, class Batch, class AfterFirst>
    void run_stage(const Batch& batch, AfterFirst& after_first);
    template <std::size_t Index, class Batch>
    void call_stage(BasicStreamRef<backend> stream, std::size_t number, const Batch* batch);

    // Schedule::graphed. A step of number n has stage k work on batch n - k; `batch` is null when n has none.
    template <class Batch>
    void step(std::size_t number, const Batch* batch, const detail::BatchKey& key);
    template <class Batch>
    void run_forked(BasicStreamRef<backend> origin, std::size_t number, const Batch* batch);
    template <class Batch>
    void run_uncaptured(std::size_t number, const Batch* batch);
    void drain_steps();
    bool is_active(std::size_t stage, std::size_t number) const noexcept {
        const std::size_t lag = lags() ? stage : 0;
        return number >= lag && number - lag >= drained_ && number - lag < drained_ + filled_;
    }
    bool lags() const noexcept { return options_.slots > 1; }

    void require_sound(const char* call) const;
    void enter();
    void leave();
    [[noreturn]] void fail(const std::string* stage);

    static SlotOrder slot_order(Schedule schedule) {
        // Graphed steps order their stages themselves.
        return schedule == Schedule::overlapped ? SlotOrder::between_streams : SlotOrder::within_one_stream;
    }
    template <class Indices>
    struct RingsOf;
    template <std::size_t... Is>
    struct RingsOf<std::index_sequence<Is...>> {
        using type = std::tuple<SlotRing<SlotOf<Is>, backend>...>;
        static type make(MakerTuple& makers, const PipelineOptions& options) {
            return type{SlotRing<SlotOf<Is>, backend>(options.slots, std::get<Is>(makers),
                                                      slot_order(options.schedule))...};
        }
    };
    using Rings = RingsOf<std::make_index_sequence<stage_count - 1>>;

    // Whether the callable of stage `Index` fits its place. `Batch` is empty for all but the first.
    template <std::size_t Index, class... Batch>
    static constexpr bool fits();

    PipelineOptions options_;
    StageTuple stages_;
    typename Rings::type rings_;
    detail::StreamSet<backend> streams_;
    detail::StepGraphs<backend, stage_count> graphs_;
    std::atomic<bool> in_use_{false};
    bool inside_ = false; // Whether lent streams have been joined since the pipeline was last left.
    std::size_t submitted_ = 0;
    std::size_t drained_ = 0; // Under Schedule::graphed: the batches that have passed all stages for sure,
    std::size_t filled_ = 0;  // and how many came after them.
    const std::string* current_stage_ = nullptr;
    std::size_t current_batch_ = 0; // What the current stage works on.
    std::string failure_;
};

template <class... Ss, class... Makers>
Pipeline(Stages<Ss...>, Slots<Makers...>, PipelineOptions = {}) -> Pipeline<Stages<Ss...>, Slots<Makers...>>;

} // namespace sluice

#include <sluice/pipeline/detail/pipeline.inl>
