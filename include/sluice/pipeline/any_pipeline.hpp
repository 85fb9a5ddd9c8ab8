/// \file
/// A pipeline whose type says only what it takes.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include <sluice/pipeline/pipeline.hpp>

namespace sluice {

/// Holds a `Pipeline` of any stages that takes batches of type `Batch`, so that it can be a class's member or a
/// function's result. It costs one indirect call a submit. Move-only; a moved-from one may only be assigned to or
/// destroyed. Everything else is as said at `Pipeline`.
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
///     sluice::AnyPipeline<Batch> pipeline_; // last: what its stages use goes after it
/// };
/// \endcode
template <class Batch, Backend B = DefaultBackend>
class AnyPipeline {
public:
    using backend = B;

    /// Makes the pipeline. Throws what `Pipeline`'s constructor throws.
    template <class... Ss, class... Makers>
    AnyPipeline(Stages<Ss...> stages, Slots<Makers...> makers, PipelineOptions options = {})
        : pipeline_(std::make_unique<Holder<Pipeline<Stages<Ss...>, Slots<Makers...>>>>(
              std::move(stages), std::move(makers), options)) {
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

    /// See `Pipeline`.
    BatchRead submit(const Batch& batch) { return pipeline_->submit(batch); }
    BatchRead submit(Batch& batch) { return pipeline_->submit(batch); }
    void submit(const SourceBatch<Batch, B>& batch) { pipeline_->submit(batch); }
    void submit(SourceBatch<Batch, B>& batch) { pipeline_->submit(std::as_const(batch)); }
    /// For `*batch` of a source's batch.
    template <class Held>
    requires std::same_as<Held, HeldBatch<Batch, B>>
    void submit(const Held& batch) { pipeline_->submit_held(batch); }
    template <class Held>
    requires std::same_as<Held, HeldBatch<Batch, B>>
    void submit(Held& batch) { pipeline_->submit_held(batch); }
    void wait_for(BasicStreamRef<B> stream) { pipeline_->wait_for(stream); }
    void flush() { pipeline_->flush(); }
    void flush(BasicStreamRef<B> stream) { pipeline_->flush(stream); }
    void finish() { pipeline_->finish(); }
    void reset() { pipeline_->reset(); }
    std::size_t submitted() const noexcept { return pipeline_->submitted(); }
    const PipelineOptions& options() const noexcept { return pipeline_->options(); }
    BasicStreamRef<B> stream(std::size_t index) const { return pipeline_->stream(index); }
    bool failed() const noexcept { return pipeline_->failed(); }
    GraphCounters graph_counters() const noexcept { return pipeline_->graph_counters(); }

private:
    struct Interface {
        virtual ~Interface() = default;
        virtual BatchRead submit(const Batch& batch) = 0;
        virtual BatchRead submit(Batch& batch) = 0;
        virtual void submit(const SourceBatch<Batch, B>& batch) = 0;
        /// Of a `HeldBatch`.
        virtual void submit_held(const Batch& batch) = 0;
        virtual void wait_for(BasicStreamRef<B> stream) = 0;
        virtual void flush() = 0;
        virtual void flush(BasicStreamRef<B> stream) = 0;
        virtual void finish() = 0;
        virtual void reset() = 0;
        virtual std::size_t submitted() const noexcept = 0;
        virtual const PipelineOptions& options() const noexcept = 0;
        virtual BasicStreamRef<B> stream(std::size_t index) const = 0;
        virtual bool failed() const noexcept = 0;
        virtual GraphCounters graph_counters() const noexcept = 0;
    };
    template <class P>
    struct Holder final : Interface {
        template <class S, class M>
        Holder(S stages, M makers, const PipelineOptions& options)
            : held(std::move(stages), std::move(makers), options) {}
        BatchRead submit(const Batch& batch) override { return held.submit(batch); }
        BatchRead submit(Batch& batch) override { return held.submit(batch); }
        void submit(const SourceBatch<Batch, B>& batch) override { held.submit(batch); }
        void submit_held(const Batch& batch) override {
            if constexpr (HoldableBatch<Batch>)
                held.submit(static_cast<const HeldBatch<Batch, B>&>(batch));
        }
        void wait_for(BasicStreamRef<B> stream) override { held.wait_for(stream); }
        void flush() override { held.flush(); }
        void flush(BasicStreamRef<B> stream) override { held.flush(stream); }
        void finish() override { held.finish(); }
        void reset() override { held.reset(); }
        std::size_t submitted() const noexcept override { return held.submitted(); }
        const PipelineOptions& options() const noexcept override { return held.options(); }
        BasicStreamRef<B> stream(std::size_t index) const override { return held.stream(index); }
        bool failed() const noexcept override { return held.failed(); }
        GraphCounters graph_counters() const noexcept override { return held.graph_counters(); }
        P held;
    };

    std::unique_ptr<Interface> pipeline_;
};

} // namespace sluice
