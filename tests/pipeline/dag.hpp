// Pipelines of any shape, whose results show any batch that is lost, doubled, late or torn, with the results that a
// plain loop gives.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "pipeline/dag_stages.hpp"

namespace sluice::test {

/// Stages `Ss`, each of which passes what it reads through `ops::step` with a memory, its own or, where it has several
/// lanes, the slot's. Captured work keeps nothing on the host. Must outlive its pipelines.
template <Backend B, DagStage... Ss>
class Dag : public DagOf<B> {
public:
    template <std::size_t I>
    using Output = DagOutput<B, I>;
    static constexpr std::size_t stages = sizeof...(Ss);
    static_assert(stages <= DagOf<B>::most_stages);
    static constexpr std::array<DagStage, stages> shape{Ss...};

    explicit Dag(std::size_t count) : DagOf<B>(shape, count) {}

    auto pipeline(const PipelineOptions& options) {
        return [&]<std::size_t... Is, std::size_t... Makers>(std::index_sequence<Is...>,
                                                             std::index_sequence<Makers...>) {
            return Pipeline{Stages{dag_stage<typename decltype(node<Is>())::type, shape[Is].cpu>(
                                *this, Is, shape[Is])...},
                            Slots{DagMaker<B, makers[Makers]>{this->words}...}, options};
        }
        (std::make_index_sequence<stages>{}, std::make_index_sequence<made>{});
    }

private:
    // The stages that make something of their own.
    static constexpr std::size_t made = ((Ss.output && !Ss.in_place) + ... + std::size_t{0});
    static constexpr auto makers = [] {
        std::array<std::size_t, made> all{};
        for (std::size_t stage = 0, maker = 0; stage < stages; ++stage) {
            if (shape[stage].output && !shape[stage].in_place)
                all[maker++] = stage;
        }
        return all;
    }();
    // What stage I takes: earlier outputs, and then the batch.
    template <std::size_t I, std::size_t J, class... Ins>
    static auto inputs_from(detail::Types<Ins...>) {
        if constexpr (J < I) {
            if constexpr ((shape[I].reads >> J & 1) != 0 && changed_by(shape, I) != J && shape[I].window > 1)
                return inputs_from<I, J + 1>(
                    detail::Types<Ins..., const Last<shape[I].window, Output<made_by(shape, J)>>&>{});
            else if constexpr ((shape[I].reads >> J & 1) != 0 && changed_by(shape, I) != J)
                return inputs_from<I, J + 1>(detail::Types<Ins..., const Output<made_by(shape, J)>&>{});
            else
                return inputs_from<I, J + 1>(detail::Types<Ins...>{});
        } else if constexpr (shape[I].batch) {
            return detail::Types<Ins..., PinnedSpan<const Word, B>>{};
        } else {
            return detail::Types<Ins...>{};
        }
    }
    template <std::size_t I>
    static auto node() {
        using Ins = decltype(inputs_from<I, 0>(detail::Types<>{}));
        if constexpr (shape[I].every > 1 && shape[I].cpu)
            return std::type_identity<DagCpuTurnNode<B, I, Ins>>{};
        else if constexpr (shape[I].every > 1)
            return std::type_identity<DagTurnNode<B, I, Ins>>{};
        else if constexpr (shape[I].in_place && shape[I].cpu)
            return std::type_identity<DagCpuInPlaceNode<B, I, Output<made_by(shape, I)>, Ins>>{};
        else if constexpr (shape[I].in_place)
            return std::type_identity<DagInPlaceNode<B, I, Output<made_by(shape, I)>, Ins>>{};
        else if constexpr (shape[I].output && shape[I].cpu)
            return std::type_identity<DagCpuNode<B, I, Ins>>{};
        else if constexpr (shape[I].output)
            return std::type_identity<DagNode<B, I, Ins>>{};
        else if constexpr (shape[I].cpu)
            return std::type_identity<DagCpuSink<B, I, Ins>>{};
        else
            return std::type_identity<DagSink<B, I, Ins>>{};
    }
};

/// Options of a pipeline that says nothing of refusals.
inline PipelineOptions dag_options(Schedule schedule, int slots, int steps) {
    PipelineOptions options{.schedule = schedule, .slots = slots, .steps_per_graph = steps};
    options.graphs.on_refusal = nullptr;
    options.graphs.give_up_after = 0; // which is a refusal too
    return options;
}

/// The least slots with which the shape can be made: stages beside graphs need more.
template <class D>
int slots_for(D& dag, const PipelineOptions& options) {
    for (int slots = options.slots;; ++slots) {
        PipelineOptions tried = options;
        tried.slots = slots;
        const std::string text = text_of([&] { (void)dag.pipeline(tried); });
        if (!contains(text, "slots between stages"))
            return slots;
    }
}

} // namespace sluice::test
