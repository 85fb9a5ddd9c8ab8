/// \file
/// Pipelines: stages that work on successive batches at the same time.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/pipeline/batch_read.hpp>
#include <sluice/pipeline/detail/boundary/batch_traits.hpp>
#include <sluice/pipeline/detail/boundary/only_moves.hpp>
#include <sluice/pipeline/detail/boundary/plan_check.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/detail/core/pipeline_core.hpp>
#include <sluice/pipeline/pipeline_options.hpp>
#include <sluice/pipeline/results.hpp>
#include <sluice/pipeline/source.hpp>
#include <sluice/pipeline/stage.hpp>
#include <sluice/pipeline/stage_time.hpp>

namespace sluice {

namespace detail {
struct PipelineAccess;
} // namespace detail

/// A batch that a pipeline takes: one that stays, or whose bytes are all there is to it.
template <class Batch>
concept Submittable =
    std::is_lvalue_reference_v<Batch> || std::is_trivially_copyable_v<std::remove_cvref_t<Batch>>;

/// A batch that names, or owns, memory of the host, as far as it shows its members: the stages read it after `submit` has
/// returned.
template <class Batch>
concept NamesHostMemory = detail::names_host_memory<std::remove_cvref_t<Batch>>();

namespace detail {

template <class Batch>
BatchRead refuse_temporary();

/// As `Pipeline::try_submit`: what `submit` returns of a batch, or nothing, or whether a source's was taken.
template <bool names_host_memory, class Core, class P, class Batch>
auto try_submit(Core& core, P& pipeline, Batch&& batch) {
    const bool room = core.has_room();
    if constexpr (std::is_void_v<decltype(pipeline.submit(std::forward<Batch>(batch)))>) {
        if (room)
            pipeline.submit(std::forward<Batch>(batch));
        return room;
    } else {
        using Tried = std::conditional_t<names_host_memory, TriedSubmit, std::optional<BatchRead>>;
        return room ? Tried(pipeline.submit(std::forward<Batch>(batch))) : Tried();
    }
}

} // namespace detail

/// The stages of a pipeline, in an order in which each comes after those whose outputs it takes.
template <class... Ss>
struct Stages {
    static_assert(sizeof...(Ss) > 0, "sluice::Stages: name at least one stage");
    static_assert(!(detail::is_only_moved<Ss> || ...),
                  "sluice::Stages: a stage whose callable can only be moved is moved here, as in "
                  "Stages{std::move(stage), other}");
    static_assert(((detail::is_stage<Ss> || detail::is_only_moved<Ss>)&&...),
                  "sluice::Stages: each must be a sluice::Stage, as in Stages{Stage{\"encode\", callable}}");
    /// Moved into the pipeline.
    detail::Each<Ss...> all;
    /// Takes each stage by value.
    explicit Stages(Ss... stages) : all{{static_cast<Ss&&>(stages)}...} {}
};
/// Does not compile.
template <class... Given>
requires(detail::GivenByName<Given> || ...) Stages(Given&&...)
->Stages<detail::OnlyMoves<std::remove_cvref_t<Given>>...>;

/// What makes the stages' outputs, one for each stage that has one, in the order of the stages: each is called as
/// `make(int slot)` for each slot of its ring, once, when the pipeline is made.
template <class... Makers>
struct Slots {
    static_assert(
        !(detail::is_only_moved<Makers> || ...),
        "sluice::Slots: a slot maker that can only be moved is moved here, as in Slots{std::move(make)}");
    /// Used by the pipeline's constructor, and dropped then.
    detail::Each<Makers...> all;
    /// Takes each maker by value.
    explicit Slots(Makers... makers) : all{{static_cast<Makers&&>(makers)}...} {}
};
/// Does not compile.
template <class... Given>
requires(detail::GivenByName<Given> || ...) Slots(Given&&...)
->Slots<detail::OnlyMoves<std::remove_cvref_t<Given>>...>;

/// Runs each submitted batch through all stages, in order, once. Where no stage has an output, `Slots` may be left out.
///
/// Which stage takes whose output follows from the types that their callables take, see `Stage`: a chain, a fork, a
/// join, any graph without circles. Stages with no way between them work on the same batch at the same time, all stages
/// on successive ones. Each waits on its own stream for just those that it must come after; the host waits for none.
///
/// A pipeline is driven by one thread at a time; separate pipelines are independent of each other. It belongs
/// to the device that was current when it was made, unless a stage names another, and leaves the caller's current device
/// as it was. After the first lap over the slots, a step creates and allocates nothing, and waits for nothing but room (`PipelineOptions::in_flight`). What stages and slots
/// refer to must outlive it. It can be neither copied nor moved; a function can return a new one, and `AnyPipeline` holds
/// one as a member.
///
/// Under `Schedule::graphed` the work of a step is one graph, in which each stage works on the batch after the one that
/// the next stage works on. So later stages of the last batches are enqueued by `flush` or `finish`, or by the submits
/// that follow. With `graph_each_stage`, or where a stage opts out or is a CPU stage, and in a loop over `run` with fewer slots than
/// stages, each stage has graphs of its own, and nothing is held back. There is a graph for each kind of batch: batches are told apart by what their members hold on the host,
/// numbers by value, buffers and spans by address and size, or by what a function `graph_key(const Batch&)` of the
/// batch's own gives. The bytes of the slots count as well. A kind runs eagerly the first time, and is captured the
/// second; what cannot be told apart or captured runs eagerly, and `on_refusal` gets the reason.
///
/// A stage that throws leaves the pipeline drained and failed: batches before pass all stages, the batch in hand is lost, and those
/// behind it that are held for a graph, every later call throws, and `reset` makes it usable again.
/// What a stage threw is nested in the `Error` that names the stage and the batch. What a CPU stage throws comes from the
/// next call; until then, GPU stages that were enqueued behind it run on what the slot held before. Of several stages that
/// throw, the one for the earliest batch is named, and for one batch the first of them.
///
/// \code
/// sluice::Pipeline pipeline{sluice::Stages{copy, encode, train}, sluice::Slots{make_images, make_features}};
/// for (const auto& batch : source) pipeline.submit(batch);
/// pipeline.finish();
/// \endcode
template <class StageList, class SlotList>
class Pipeline;

/// See the primary template.
template <class... Ss, class... Makers>
class Pipeline<Stages<Ss...>, Slots<Makers...>> {
    static_assert((detail::is_stage<Ss> && ...),
                  "sluice::Pipeline: each stage must be a sluice::Stage, as in Stage{\"encode\", callable}");
    using Shape = detail::Shape<std::tuple<Ss...>, std::tuple<Makers...>,
                                typename detail::PipelineBackend<Ss...>::type>;
    // Says why the stages don't fit together, if they don't.
    using Fits = typename decltype(detail::fits_together < Shape,
                                   sizeof...(Makers) == 0 && Shape::lacks_makers > ())::type;
    using Result = typename detail::ResultOf<Shape>::type;

public:
    /// That of its GPU stages; `Host` where there is none.
    using backend = typename Shape::backend;
    /// What the last stage makes, if no stage reads it: what `run` gives. Otherwise void.
    using result_type = Result;
    /// How many stages there are.
    static constexpr std::size_t stage_count = sizeof...(Ss);

    static_assert(((std::is_same_v<typename Ss::backend, backend> ||
                    std::is_same_v<typename Ss::backend, Host>)&&...),
                  "sluice::Pipeline: all stages must take streams of the same backend, CPU stages excepted");

    /// Makes the streams, events and slots. Throws `Error`; what a maker throws is nested in one that names the stage and
    /// the slot.
    Pipeline(Stages<Ss...> stages, Slots<Makers...> makers, PipelineOptions options = {});

    /// The same for stages of which none has an output.
    explicit Pipeline(Stages<Ss...> stages,
                      PipelineOptions options = {}) requires(sizeof...(Makers) == 0 && !Shape::lacks_makers)
        : Pipeline(std::move(stages), Slots<Makers...>(), options) {}
    /// Does not compile: a stage has an output, and no slot makers are given.
    explicit Pipeline(Stages<Ss...> stages,
                      PipelineOptions options = {}) requires(sizeof...(Makers) == 0 && Shape::lacks_makers)
        : Pipeline(NotMade{}) {
        (void)stages;
        (void)options;
        static_assert(sizeof...(Makers) > 0,
                      "sluice::Pipeline: a stage has an output, and no slot makers are given; name a slot "
                      "maker for each stage's output, as in Pipeline{Stages{a, b}, Slots{make}}");
    }

    Pipeline(const Pipeline&) = delete;            ///< Cannot be copied.
    Pipeline& operator=(const Pipeline&) = delete; ///< Cannot be assigned.

    /// Enqueues what submitted batches still need, unless the pipeline has failed, and waits for the work in flight.
    ~Pipeline() = default;

    /// Enqueues all stages for `batch` and returns.
    ///
    /// What the stages read of it, such as pinned memory, must stay as it is until they have: say with what is returned
    /// which it is, `submit(batch).wait()` for a batch that is filled again at once, or `submit(batch).stays()` for one
    /// that stays as it is until `finish`; or keep it until the batch is to be filled again, see `BatchRead`. Batches of a
    /// `Source` see to it themselves. That holds for a batch that is held under `Schedule::graphed`, of which nothing has
    /// been enqueued yet, as well. A batch that is not trivially copyable is referred to until then.
    /// \throws Error for a stage's exception or failed call, a known fault of earlier work, or a pipeline that has
    /// failed before.
    template <class Batch>
    requires Submittable<Batch> && NamesHostMemory<Batch>
    [[nodiscard("call wait() or stays(), or keep it: see sluice::BatchRead")]] BatchRead
    submit(Batch&& batch) {
        return core_.submit(given(std::as_const(batch)), true);
    }
    /// The same for a batch of numbers and device memory, which may be reused at once.
    template <class Batch>
    requires Submittable<Batch> &&(!NamesHostMemory<Batch>)BatchRead submit(Batch&& batch) {
        return core_.submit(given(std::as_const(batch)), false);
    }

    /// Does not compile: a temporary batch that owns what the work reads would be gone before the work starts.
    template <class Batch>
    requires(!Submittable<Batch>) BatchRead submit(Batch&&) { return detail::refuse_temporary<Batch>(); }

    /// As `submit`, but waits for no room: where as many batches are in flight as `PipelineOptions::in_flight` allows, the
    /// batch is not taken, nothing is returned, and `dropped` counts it. For input that is newer than its place in a queue.
    ///
    /// \code
    /// if (auto read = pipeline.try_submit(frame)) reads[place] = std::move(*read);
    /// \endcode
    /// For a source's batch a `bool` says whether it was taken.
    template <class Batch>
    [[nodiscard("it tells whether the batch was taken, and when it has been read")]] auto
    try_submit(Batch&& batch) {
        return detail::try_submit<NamesHostMemory<Batch>>(core_, *this, std::forward<Batch>(batch));
    }

    /// The same for a batch of a source: its slot is filled again once all stages that take the batch have read it.
    template <class Batch, Backend B>
    void submit(const SourceBatch<Batch, B>& batch) {
        submit_of_source(batch);
    }
    /// The same.
    template <class Batch, Backend B>
    void submit(SourceBatch<Batch, B>& batch) {
        submit_of_source(batch);
    }
    /// The same.
    template <class Batch, Backend B>
    void submit(SourceBatch<Batch, B>&& batch) {
        submit_of_source(batch);
    }
    /// The same for `*batch`.
    template <class Batch, Backend B>
    void submit(const HeldBatch<Batch, B>& batch) {
        if constexpr (std::is_same_v<B, backend>)
            core_.submit_held(given(static_cast<const Batch&>(batch)), detail::HeldBatchAccess::hold(batch));
    }

    /// Submits the batches of `source` and gives the results of the last stage, in order: `for (const auto& result :
    /// pipeline.run(source))`. Each is valid, and not written, until the next one is asked for; as many batches are under
    /// way as there are slots. Waits for each result. The last stage must have an output, in memory that the host reads.
    /// Batches that are no source's stay as they are until their results have been given; of a range that can be gone
    /// through once, until the next one is asked for.
    ///
    /// A loop that is left early loses nothing: the next `run`, or `drain`, begins with the results of the batches under
    /// way. A `submit` in between needs their slots, and gives them up. Throws `Error`: a stage's at once, and what the
    /// source throws behind the results of all batches before it.
    ///
    /// Once `stop` says so, no further batch is taken from the source: the loop has the results of all that were submitted,
    /// and ends. A later `run` goes on with the source's next batch. `stop` is looked at before each batch is asked for; a source
    /// that is waited for has to end, or have a batch, first.
    template <class Source, StopRequest Stop = detail::NeverStop>
    [[nodiscard("nothing runs but for a loop over it")]] Results<Pipeline, Source, result_type, Stop>
    run(Source& source, Stop stop = {});

    /// Does not compile.
    template <class Source, class... Stop>
    requires(!std::is_lvalue_reference_v<Source> ||
             !(StopRequest<std::remove_cvref_t<Stop>> && ...)) auto run(Source&&, const Stop&...) {
        static_assert(std::is_lvalue_reference_v<Source>,
                      "sluice::Pipeline::run: the source is a temporary, and must outlive the loop: give it "
                      "a name, as in for (auto& result : pipeline.run(source))");
        static_assert(!std::is_lvalue_reference_v<Source>,
                      "sluice::Pipeline::run: what tells the loop to end is a std::stop_token, or is called "
                      "as bool(), such as [&] { return stop.load(); }");
        return std::initializer_list<int>();
    }

    /// The results that a loop over `run` has left, when it was left early: `for (const auto& result : pipeline.drain())`.
    /// Throws `Error`.
    template <class None = detail::NoBatches>
    [[nodiscard("nothing is given but to a loop over it")]] Results<Pipeline, None, result_type> drain() {
        return run(None::instance());
    }

    /// Waits until there is room for a batch, see `PipelineOptions::in_flight`: called before a batch is asked for, so that a source
    /// of live input gives its newest then. Throws `Error` as `submit` does.
    void wait_for_room() { core_.wait_for_room(); }

    /// Orders all batches submitted later after what is on `stream`, the caller's, now. As all calls but a destructor's, refused
    /// with an `Error`, which changes nothing, while that stream or one given to a stage is being captured.
    void wait_for(BasicStreamRef<backend> stream) { core_.wait_for(stream); }

    /// Sees that all submitted batches are on their way, and orders later work on external streams after them.
    /// Does not wait for the device. Throws `Error` for a known fault.
    void flush() { core_.flush(); }

    /// The same, and orders later work on `stream`, the caller's, after them too. `stream` is not being captured.
    void flush(BasicStreamRef<backend> stream) { core_.flush(stream); }

    /// Waits until all submitted batches have passed all stages. Throws `Error` for any fault of their work.
    /// The pipeline takes further batches afterwards.
    void finish() { core_.finish(); }

    /// Waits for work in flight, whatever becomes of it, and starts anew: no failure, no batches, all slots
    /// free, no graphs. Throws `Error` when the device is lost, as after an illegal address; then only a new process
    /// helps.
    void reset() { core_.reset(); }

    /// Batches that have been submitted since the pipeline was made or reset.
    std::size_t submitted() const noexcept { return core_.submitted(); }

    /// Those of them that are seen to be through all stages: each one where `PipelineOptions::in_flight` is less than 64, or
    /// else up to a quarter of that later, or up to 64 where none was given; all of them after `finish`. Asks the device, and waits for nothing. Asked again with nothing
    /// submitted in between, it looks at all, and sends those that are held on their way, as `flush` does. Throws `Error` for a
    /// known fault, and where the pipeline has failed.
    std::size_t completed() { return core_.completed(); }

    /// Times that `try_submit` has taken no batch, since then.
    std::size_t dropped() const noexcept { return core_.dropped(); }

    /// Whether a failure has been thrown that `reset` has not cleared.
    bool failed() const noexcept { return core_.failed(); }

    /// As given when it was made, but that `graph_each_stage` is true once a loop over `run` has had too few slots for graphs of steps.
    const PipelineOptions& options() const noexcept { return core_.options(); }

    /// What `Schedule::automatic` has found so far. Throws `Error` where the pipeline was made with another schedule.
    const ScheduleChoice& choice() const { return core_.choice(); }

    /// What became of the steps' graphs, and why steps that were not replayed were not; all 0 under other schedules.
    GraphCounters graph_counters() const noexcept { return core_.graph_counters(); }

    /// When each stage worked on each of the last `PipelineOptions::timed_batches` batches that were noted: stage by stage, in
    /// the order of the batches. Call it after `finish`: work that is not over is left out. Each graph of whole steps tells of its stages
    /// in its latest run alone, so there are fewer batches then, 16 or so; the graph itself is a piece of work of stage
    /// `stage_count`. Throws `Error`, also where nothing is noted.
    std::vector<StageTime> stage_times() { return core_.stage_times(); }

    /// When the calling thread was in `submit` for each of these batches, in their order: stage `stage_count + 1`. Throws
    /// `Error` likewise.
    std::vector<StageTime> submit_times() { return core_.submit_times(); }

    /// The name of stage `index`. Throws `Error` where there is no such stage.
    const std::string& stage_name(std::size_t index) const { return core_.stage_name(index); }

    /// Whether stage `index` runs on threads of its own, as a CPU stage of a device's pipeline does. Throws `Error` likewise.
    bool is_cpu_stage(std::size_t index) const { return core_.is_cpu_stage(index); }

    /// The device that stage `index` works on. Throws `Error` likewise.
    int device_of(std::size_t index) const { return core_.device_of(index); }

    /// The multiprocessors that stage `index` runs on, where a stage on its device has asked for some of its own: as many as
    /// it asked for, rounded up to what the device shares out, or what is left. Otherwise 0; see
    /// `StageOptions::multiprocessors`. Throws `Error` likewise.
    int multiprocessors(std::size_t index) const { return core_.multiprocessors(index); }

    /// The same in a sentence for each device: "Of the 132 multiprocessors of device 0, which it shares out in groups of 8,
    /// detect has 8 for the 5 that it asked for and the other stages have 124." Empty where no stage has a share.
    std::string shares() const { return core_.shares(); }

    /// The stream that stage `index` is handed first, the first one's under `Schedule::serial`. What the caller enqueues
    /// there comes between that stage's work for the batches before and after, but not under `Schedule::graphed`:
    /// replays, on the first stage's stream, lag behind by a batch a stage. Use `wait_for` and `flush` there. Throws
    /// `Error` where there is no such stage, or it has no stream.
    BasicStreamRef<backend> stream(std::size_t index) const { return core_.stream(index); }

private:
    struct NotMade {};
    explicit Pipeline(NotMade); // of a program that has been refused; there is no body

    template <class Pipe, class Source, class Out, class Stop>
    friend class Results;
    template <class Batch, Backend B>
    friend class AnyPipeline;
    friend struct detail::PipelineAccess;

    template <class Batch>
    static const detail::StageCall<backend>* calls_for() noexcept {
        return detail::StageCalls<Shape, Batch>::all;
    }
    template <class Batch>
    static detail::GivenBatch<backend> given(const Batch& batch) noexcept {
        return {&batch, &detail::batch_ops<Batch, backend>, calls_for<Batch>()};
    }
    template <class Batch, Backend B>
    void submit_of_source(const SourceBatch<Batch, B>& batch);
    detail::PipelineCore<backend>& core() noexcept { return core_; }

    detail::Each<Ss...> stages_;
    detail::PipelineCore<backend> core_; // It knows where the stages are.
};

/// Of stages and slot makers.
template <class... Ss, class... Makers>
Pipeline(Stages<Ss...>, Slots<Makers...>, PipelineOptions = {}) -> Pipeline<Stages<Ss...>, Slots<Makers...>>;
/// Of stages that have no outputs.
template <class... Ss>
Pipeline(Stages<Ss...>, PipelineOptions = {}) -> Pipeline<Stages<Ss...>, Slots<>>;

} // namespace sluice

#include <sluice/pipeline/detail/misspelt.hpp>
#include <sluice/pipeline/detail/pipeline.inl>
