// Bodies of any_pipeline.hpp.
#pragma once

namespace sluice {

/// \cond
// What is deduced without a batch.
template <class... Given>
class AnyPipeline<detail::Types<Given...>, Host> {
    static_assert(detail::never<Given...>,
                  "sluice::AnyPipeline: name the batch that it takes, as in AnyPipeline<Batch>{...}");

public:
    explicit AnyPipeline(const Given&..., PipelineOptions = {}) {}
};
template <class... Given>
AnyPipeline(Given...) -> AnyPipeline<detail::Types<Given...>, Host>;
/// \endcond

/// All that is asked of a pipeline whose type is not known.
template <class Batch, Backend B>
struct AnyPipeline<Batch, B>::Held {
    detail::PipelineCore<B>* core = nullptr;
    const detail::BatchOps* ops = nullptr;
    const detail::StageCall<B>* calls = nullptr;
    const void* result_tag = nullptr; // one for each type of result
    virtual ~Held() = default;
};

template <class Batch, Backend B>
template <class Pipe>
struct AnyPipeline<Batch, B>::HeldAs final : Held {
    template <class StageList, class MakerList>
    HeldAs(StageList stages, MakerList makers, const PipelineOptions& options)
        : pipeline(std::move(stages), std::move(makers), options) {
        Held::core = &pipeline.core_;
        Held::ops = &detail::batch_ops<Batch, B>;
        Held::calls = Pipe::template calls_for<Batch>();
        Held::result_tag = &detail::type_tag<typename Pipe::result_type>;
    }
    Pipe pipeline;
};

template <class Batch, Backend B>
detail::PipelineCore<B>& AnyPipeline<Batch, B>::core() const {
    return *detail::owned_by("pipeline", held_.get())->core;
}

template <class Batch, Backend B>
detail::GivenBatch<B> AnyPipeline<Batch, B>::given(const Batch& batch) const noexcept {
    return {&batch, held_->ops, held_->calls};
}

template <class Batch, Backend B>
template <class Out>
void AnyPipeline<Batch, B>::require_result() const {
    if (detail::owned_by("pipeline", held_.get())->result_tag != &detail::type_tag<Out>) {
        throw Error("run: the last stage does not make what was asked for; name the type of its output, "
                    "which no stage may read, as in run<Features>(source)");
    }
}

} // namespace sluice
