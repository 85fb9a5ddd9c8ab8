// Bodies of any_pipeline.hpp.
#pragma once

namespace sluice {

template <class Batch, Backend B>
struct AnyPipeline<Batch, B>::Interface {
    virtual ~Interface() = default;
    virtual BatchRead submit(const Batch& batch) = 0;
    virtual BatchRead submit(Batch& batch) = 0;
    virtual void submit(const SourceBatch<Batch, B>& batch) = 0;
    /// Of a `HeldBatch`.
    virtual void submit_held(const Batch& batch) = 0;
    /// One for each type of result.
    virtual const void* result_tag() const noexcept = 0;
    virtual const void* await_result(std::size_t number) = 0;
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
    virtual const ScheduleChoice& choice() const = 0;
    virtual std::vector<StageTime> stage_times() = 0;
    virtual std::vector<StageTime> submit_times() = 0;
    virtual std::size_t stages() const noexcept = 0;
    virtual const std::string& stage_name(std::size_t index) const = 0;
    virtual bool is_cpu_stage(std::size_t index) const = 0;
    virtual int device_of(std::size_t index) const = 0;
};

template <class Batch, Backend B>
template <class Pipe>
struct AnyPipeline<Batch, B>::Holder final : Interface {
    template <class StageList, class MakerList>
    Holder(StageList stages, MakerList makers, const PipelineOptions& options)
        : held(std::move(stages), std::move(makers), options) {}
    BatchRead submit(const Batch& batch) override { return held.submit(batch); }
    BatchRead submit(Batch& batch) override { return held.submit(batch); }
    void submit(const SourceBatch<Batch, B>& batch) override { held.submit(batch); }
    void submit_held(const Batch& batch) override {
        if constexpr (HoldableBatch<Batch>)
            held.submit(static_cast<const HeldBatch<Batch, B>&>(batch));
    }
    const void* result_tag() const noexcept override { return &detail::type_tag<typename Pipe::result_type>; }
    const void* await_result(std::size_t number) override {
        if constexpr (std::is_void_v<typename Pipe::result_type>)
            return nullptr; // `run` has refused it.
        else
            return &held.template await_result<typename Pipe::result_type>(number);
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
    const ScheduleChoice& choice() const override { return held.choice(); }
    std::vector<StageTime> stage_times() override { return held.stage_times(); }
    std::vector<StageTime> submit_times() override { return held.submit_times(); }
    std::size_t stages() const noexcept override { return Pipe::stage_count; }
    const std::string& stage_name(std::size_t index) const override { return held.stage_name(index); }
    bool is_cpu_stage(std::size_t index) const override { return held.is_cpu_stage(index); }
    int device_of(std::size_t index) const override { return held.device_of(index); }
    Pipe held;
};

template <class Batch, Backend B>
template <class Out>
void AnyPipeline<Batch, B>::require_result() const {
    if (pipeline_->result_tag() != &detail::type_tag<Out>) {
        throw Error(
            "run: the last stage does not make what was asked for; name the type of its output, which no "
            "stage may read, as in run<Features>(source)");
    }
}

} // namespace sluice
