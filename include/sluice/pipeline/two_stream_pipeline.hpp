/// \file
/// The pipeline of two stages.
#pragma once

#include <utility>

#include <sluice/pipeline/pipeline.hpp>

namespace sluice {

/// Two stages on two streams, with a ring of slots between them: the two-stage case of `Pipeline`, which documents all functions.
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
    /// Throws `Error`; what `make_slot` throws is nested in it.
    TwoStreamPipeline(Producer producer, Consumer consumer, MakeSlot make_slot, PipelineOptions options = {})
        : Pipeline<Stages<Producer, Consumer>, Slots<MakeSlot>>(
              Stages<Producer, Consumer>(std::move(producer), std::move(consumer)),
              Slots<MakeSlot>(std::move(make_slot)), options) {}
};

/// Two stages that exchange nothing.
template <class Producer, class Consumer>
class TwoStreamPipeline<Producer, Consumer, void> : public Pipeline<Stages<Producer, Consumer>, Slots<>> {
public:
    /// Runs `first`, and beside it `second`, on each batch. Throws `Error`.
    TwoStreamPipeline(Producer first, Consumer second, PipelineOptions options = {})
        : Pipeline<Stages<Producer, Consumer>, Slots<>>(
              Stages<Producer, Consumer>(std::move(first), std::move(second)), options) {}
};

/// \cond
// What is deduced where it is made of something else.
template <class... Given>
class TwoStreamPipeline<detail::Types<Given...>, void, void> {
    static_assert(!(std::is_same_v<Given, detail::NoSuchOption> || ...), SLUICE_NO_SUCH_OPTION);
    static_assert(!(detail::is_only_moved<Given> || ...),
                  "sluice::TwoStreamPipeline: what can only be moved, as a stage with such a callable, is "
                  "moved here, as in TwoStreamPipeline{std::move(stage), other, make}");
    static_assert(
        ((detail::is_only_moved<Given> || std::is_same_v<Given, detail::NoSuchOption>) || ...),
        "sluice::TwoStreamPipeline: it is made of two stages and what makes the slots between them, as in "
        "TwoStreamPipeline{a, b, make, {.slots = 3}}; more stages take Pipeline{Stages{...}, Slots{...}}");

public:
    explicit TwoStreamPipeline(const Given&..., PipelineOptions = {}) {}
};
template <class... Given>
TwoStreamPipeline(Given...) -> TwoStreamPipeline<detail::Types<Given...>, void, void>;
template <class A, class B, class Make>
TwoStreamPipeline(A, B, Make, detail::NoSuchOption)
    -> TwoStreamPipeline<detail::Types<detail::NoSuchOption, A, B, Make>, void, void>;
template <class A, class B, class Make>
requires(detail::GivenByName<A> || detail::GivenByName<B> || detail::GivenByName<Make>)
    TwoStreamPipeline(A&&, B&&, Make&&, PipelineOptions = {})
->TwoStreamPipeline<detail::Types<detail::OnlyMoves<std::remove_cvref_t<A>>, B, Make>, void, void>;
/// \endcond

/// Of two stages that exchange nothing.
template <class Producer, class Consumer>
TwoStreamPipeline(Producer, Consumer, PipelineOptions = {}) -> TwoStreamPipeline<Producer, Consumer, void>;

} // namespace sluice
