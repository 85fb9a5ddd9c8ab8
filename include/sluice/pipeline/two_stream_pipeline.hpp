/// \file
/// The pipeline of two stages.
#pragma once

#include <utility>

#include <sluice/pipeline/pipeline.hpp>

namespace sluice {

/// Two stages on two streams, with a ring of slots between them: the two-stage case of `Pipeline`, which see.
///
/// \code
/// sluice::TwoStreamPipeline pipeline{encode, train, [&](int slot) { return Features{batch_size}; },
///                                    {.schedule = sluice::Schedule::overlapped}};
/// for (const auto& batch : source) pipeline.submit(batch);
/// pipeline.finish();
/// \endcode
template <class Producer, class Consumer, class MakeSlot>
class TwoStreamPipeline : public Pipeline<Stages<Producer, Consumer>, Slots<MakeSlot>> {
public:
    /// Runs `producer`, then `consumer`, on each batch; `make_slot(int slot)` makes what they exchange.
    /// Throws `Error`, and what `make_slot` throws.
    TwoStreamPipeline(Producer producer, Consumer consumer, MakeSlot make_slot, PipelineOptions options = {})
        : Pipeline<Stages<Producer, Consumer>, Slots<MakeSlot>>(
              Stages<Producer, Consumer>(std::move(producer), std::move(consumer)),
              Slots<MakeSlot>(std::move(make_slot)), options) {}
};

template <class Producer, class Consumer, class MakeSlot>
TwoStreamPipeline(Producer, Consumer, MakeSlot, PipelineOptions = {})
    -> TwoStreamPipeline<Producer, Consumer, MakeSlot>;

} // namespace sluice
