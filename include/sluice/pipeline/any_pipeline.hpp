/// \file
/// A pipeline whose type says only what it takes.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/owned.hpp>
#include <sluice/pipeline/pipeline.hpp>

namespace sluice {

/// Holds a `Pipeline` of any stages that takes batches of type `Batch`, so that it can be a class's member or a
/// function's result. A submit costs what that of the pipeline does. Move-only; a moved-from one may be assigned to, and
/// every other use throws `Error`. Everything else is as said at `Pipeline`.
///
/// \code
/// class Trainer {
/// public:
///     Trainer() : pipeline_{sluice::Stages{sluice::Stage{"encode", [this](auto... in) { encode(in...); }}, ...},
///                           sluice::Slots{make_features}} {}
///     Trainer(const Trainer&) = delete; // Its stages know where it is.
///     Trainer& operator=(const Trainer&) = delete;
///     void step(const sluice::SourceBatch<Batch>& batch) { pipeline_.submit(batch); }
///
/// private:
///     sluice::AnyPipeline<Batch> pipeline_; // last: it is destroyed first, before what its stages use
/// };
/// \endcode
template <class Batch, Backend B = DefaultBackend>
class AnyPipeline {
public:
    /// That of the stages.
    using backend = B;

    /// Makes the pipeline. Throws what `Pipeline`'s constructor throws.
    template <class... Ss, class... Makers>
    AnyPipeline(Stages<Ss...> stages, Slots<Makers...> makers, PipelineOptions options = {})
        : held_(new HeldAs<Pipeline<Stages<Ss...>, Slots<Makers...>>>(std::move(stages), std::move(makers),
                                                                      options)) {
        static_assert(std::is_same_v<typename Pipeline<Stages<Ss...>, Slots<Makers...>>::backend, B>,
                      "sluice::AnyPipeline: the stages are for another backend than the one named");
    }

    /// The same for two stages, as `TwoStreamPipeline`.
    template <class Producer, Backend ProducerBackend, class Consumer, Backend ConsumerBackend,
              class MakeSlot>
    AnyPipeline(Stage<Producer, ProducerBackend> producer, Stage<Consumer, ConsumerBackend> consumer,
                MakeSlot make_slot, PipelineOptions options = {})
        : AnyPipeline(Stages{std::move(producer), std::move(consumer)}, Slots{std::move(make_slot)},
                      options) {}

    /// Does not compile.
    template <class... Ss, class... Makers>
    AnyPipeline(Stages<Ss...>, Slots<Makers...>, detail::NoSuchOption) {
        static_assert(detail::never<Ss...>, SLUICE_NO_SUCH_OPTION);
    }
    /// Does not compile.
    template <class First, class... Rest>
    requires(!std::same_as<First, AnyPipeline>) explicit AnyPipeline(First, Rest...) {
        static_assert(
            detail::never<First, Rest...>,
            "sluice::AnyPipeline: it is made of Stages{...} and Slots{...}, of Slots{} where no stage makes "
            "anything, or of two stages and what makes the slots between them; options come behind");
    }

    /// As `Pipeline::submit`.
    [[nodiscard("call wait() or stays(), or keep it: see sluice::BatchRead")]] BatchRead
    submit(const Batch& batch) requires NamesHostMemory<Batch> {
        return core().submit(given(batch), true);
    }
    /// As `Pipeline::submit`.
    BatchRead submit(const Batch& batch) requires(!NamesHostMemory<Batch>) {
        return core().submit(given(batch), false);
    }
    /// Does not compile: a temporary batch that owns what the work reads would be gone before the work starts.
    template <class Temporary = Batch>
    BatchRead submit(const Batch&&) requires(!Submittable<Batch>) {
        return detail::refuse_temporary<Temporary>();
    }
    /// As `Pipeline::try_submit`.
    template <class Given>
    [[nodiscard("it tells whether the batch was taken, and when it has been read")]] auto
    try_submit(Given&& batch) {
        return detail::try_submit<NamesHostMemory<Given>>(core(), *this, std::forward<Given>(batch));
    }
    /// For a batch of a source.
    void submit(const SourceBatch<Batch, B>& batch) {
        const Batch& plain = detail::require_source_batch(batch);
        core().submit_held(given(plain), batch.hold());
    }
    /// For `*batch` of a source's batch.
    template <class Held>
    requires std::same_as<Held, HeldBatch<Batch, B>>
    void submit(const Held& batch) { core().submit_held(given(batch), detail::HeldBatchAccess::hold(batch)); }

    /// As `Pipeline::run`, of a pipeline whose last stage makes an `Out`: `for (const auto& loss :
    /// pipeline.run<Loss>(source))`. Throws `Error`, also where it makes something else, or nothing.
    template <class Out, class Source, StopRequest Stop = detail::NeverStop>
    [[nodiscard("nothing runs but for a loop over it")]] Results<AnyPipeline, Source, Out, Stop>
    run(Source& source, Stop stop = {}) {
        require_result<Out>();
        return Results<AnyPipeline, Source, Out, Stop>(*this, source, std::move(stop));
    }

    /// Does not compile.
    template <class Source>
    auto run(Source&&) {
        static_assert(sizeof(Source) == 0,
                      "sluice::AnyPipeline::run: name the type of the last stage's output, as in "
                      "run<Loss>(source), and give it a source that outlives the loop");
        return std::initializer_list<int>();
    }

    /// Does not compile.
    template <class Out, class Source, class... Stop>
    requires(!std::is_lvalue_reference_v<Source> ||
             !(StopRequest<std::remove_cvref_t<Stop>> && ...)) auto run(Source&&, const Stop&...) {
        static_assert(
            std::is_lvalue_reference_v<Source>,
            "sluice::AnyPipeline::run: the source is a temporary, and must outlive the loop: give it "
            "a name, as in for (auto& result : pipeline.run<Loss>(source))");
        static_assert(
            !std::is_lvalue_reference_v<Source>,
            "sluice::AnyPipeline::run: what tells the loop to end is a std::stop_token, or is called "
            "as bool(), such as [&] { return stop.load(); }");
        return std::initializer_list<int>();
    }

    /// As `Pipeline::drain`. Throws `Error` as `run` does.
    template <class Out>
    [[nodiscard("nothing is given but to a loop over it")]] Results<AnyPipeline, detail::NoBatches, Out>
    drain() {
        return run<Out>(detail::NoBatches::instance());
    }

    /// As `Pipeline::wait_for_room`.
    void wait_for_room() { core().wait_for_room(); }
    /// As `Pipeline::wait_for`.
    void wait_for(BasicStreamRef<B> stream) { core().wait_for(stream); }
    /// As `Pipeline::flush`.
    void flush() { core().flush(); }
    /// As `Pipeline::flush`.
    void flush(BasicStreamRef<B> stream) { core().flush(stream); }
    /// As `Pipeline::finish`.
    void finish() { core().finish(); }
    /// As `Pipeline::reset`.
    void reset() { core().reset(); }
    /// As `Pipeline::submitted`.
    std::size_t submitted() const { return core().submitted(); }
    /// As `Pipeline::completed`.
    std::size_t completed() { return core().completed(); }
    /// As `Pipeline::dropped`.
    std::size_t dropped() const { return core().dropped(); }
    /// As `Pipeline::options`.
    const PipelineOptions& options() const { return core().options(); }
    /// As `Pipeline::stream`.
    BasicStreamRef<B> stream(std::size_t index) const { return core().stream(index); }
    /// As `Pipeline::failed`.
    bool failed() const { return core().failed(); }
    /// As `Pipeline::graph_counters`.
    GraphCounters graph_counters() const { return core().graph_counters(); }
    /// As `Pipeline::choice`.
    const ScheduleChoice& choice() const { return core().choice(); }
    /// As `Pipeline::stage_times`.
    std::vector<StageTime> stage_times() { return core().stage_times(); }
    /// As `Pipeline::submit_times`.
    std::vector<StageTime> submit_times() { return core().submit_times(); }
    /// How many stages there are.
    std::size_t stages() const { return core().stages(); }
    /// As `Pipeline::stage_name`.
    const std::string& stage_name(std::size_t index) const { return core().stage_name(index); }
    /// As `Pipeline::is_cpu_stage`.
    bool is_cpu_stage(std::size_t index) const { return core().is_cpu_stage(index); }
    /// As `Pipeline::device_of`.
    int device_of(std::size_t index) const { return core().device_of(index); }
    /// As `Pipeline::multiprocessors`.
    int multiprocessors(std::size_t index) const { return core().multiprocessors(index); }
    /// As `Pipeline::shares`.
    std::string shares() const { return core().shares(); }

private:
    template <class Pipe, class Source, class Out, class Stop>
    friend class Results;
    friend struct detail::PipelineAccess;
    struct Held;
    template <class Pipe>
    struct HeldAs;

    detail::PipelineCore<B>& core() const;
    detail::GivenBatch<B> given(const Batch& batch) const noexcept;
    template <class Out>
    void require_result() const;

    detail::Owned<Held> held_;
};

} // namespace sluice

#include <sluice/pipeline/detail/any_pipeline.inl>
