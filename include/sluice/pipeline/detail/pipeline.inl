// Bodies of pipeline.hpp.
#pragma once

namespace sluice::detail {

template <class Batch>
BatchRead refuse_temporary() {
    constexpr bool is_bit = std::is_same_v<Batch, std::vector<bool>::reference>;
    static_assert(!is_bit,
                  "sluice::Pipeline::submit: an element of a std::vector<bool> refers to a bit and is no "
                  "bool; give it a bool, as in submit(bool(flags[i])), or loop over a std::vector<char>");
    static_assert(is_bit || Submittable<Batch>,
                  "sluice::Pipeline::submit: a temporary batch that owns memory would be gone before the "
                  "stages read it; give it a name, and keep it until it has been read");
    return {};
}

} // namespace sluice::detail

namespace sluice {

template <class... Ss, class... Makers>
Pipeline<Stages<Ss...>, Slots<Makers...>>::Pipeline(Stages<Ss...> stages, Slots<Makers...> makers,
                                                    PipelineOptions options)
    : stages_(static_cast<detail::Each<Ss...>&&>(stages.all)),
      core_(detail::PlanTables<Shape>::data, detail::Setups<Shape>(stages_, makers.all), options) {
    (void)detail::fits_together<Shape>();
}

template <class... Ss, class... Makers>
template <class Batch, Backend B>
void Pipeline<Stages<Ss...>, Slots<Makers...>>::submit_of_source(const SourceBatch<Batch, B>& batch) {
    static_assert(std::is_same_v<B, backend>,
                  "sluice::Pipeline: the source is another backend's than the stages; give it SourceOptions "
                  "of theirs, such as SourceOptions<Host>{}");
    if constexpr (std::is_same_v<B, backend>) {
        const Batch& plain = detail::require_source_batch(batch);
        core_.submit_held(given(plain), batch.hold());
    }
}

template <class... Ss, class... Makers>
template <class Source, StopRequest Stop>
Results<Pipeline<Stages<Ss...>, Slots<Makers...>>, Source,
        typename Pipeline<Stages<Ss...>, Slots<Makers...>>::result_type, Stop>
Pipeline<Stages<Ss...>, Slots<Makers...>>::run(Source& source, Stop stop) {
    return Results<Pipeline, Source, result_type, Stop>(*this, source, std::move(stop));
}

} // namespace sluice
