/// \file
/// What the compiler says of stages and slot makers that do not fit together.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

#include <sluice/pipeline/detail/boundary/shape.hpp>

namespace sluice::detail {

/// Refuses, in a sentence, what does not fit together. The compiler names `Culprit`, the stage or slot maker that it is
/// about, and its number, with the message.
template <class Culprit, std::size_t Number, PlanFault Fault>
struct FitsTogether {
    static_assert(
        Fault != PlanFault::makes_nothing,
        "sluice::Pipeline: a slot maker must be callable as make(int slot), and return what the two "
        "stages exchange");
    static_assert(Fault != PlanFault::not_callable,
                  "sluice::Pipeline: a stage's callable is no callable: it has no operator()");
    static_assert(
        Fault != PlanFault::copied,
        "sluice::Pipeline: a stage takes a slot by value, and what it writes there would be lost; take "
        "it by reference");
    static_assert(
        Fault != PlanFault::generic_in_shape,
        "sluice::Pipeline: in a pipeline that is no plain chain, each stage's callable must name the "
        "types that it takes, not auto");
    static_assert(
        Fault != PlanFault::unmade,
        "sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker "
        "makes for it or for an earlier stage; callables take (stream, const Batch&, const In&..., "
        "Out&)");
    static_assert(
        Fault != PlanFault::later,
        "sluice::Pipeline: a stage takes what a later stage, or none, makes; list each stage after those "
        "whose outputs it takes");
    static_assert(
        Fault != PlanFault::left_over,
        "sluice::Pipeline: a slot maker is left over: give one for each stage whose callable's last "
        "parameter is its output, in the order of the stages");
    static_assert(
        Fault != PlanFault::ambiguous,
        "sluice::Pipeline: a stage takes the output of one of several earlier stages that have the same "
        "type; tell them apart with sluice::Tagged");
    static_assert(
        Fault != PlanFault::twice,
        "sluice::Pipeline: a stage takes the same output twice; give what it makes a slot maker of its "
        "own, "
        "and where two stages' outputs have the same type, tell them apart with sluice::Tagged");
    static_assert(Fault != PlanFault::unread,
                  "sluice::Pipeline: no stage takes the output of a stage that is not the last one");
    static_assert(
        Fault != PlanFault::changed_by_one_of_several,
        "sluice::Pipeline: an output that several stages read must be taken as const by each of them");
    static constexpr bool value = Fault == PlanFault::none;
};

template <class Shape>
constexpr bool check_plan() {
    constexpr FoundFault found = Shape::bindings.found;
    if constexpr (found.fault == PlanFault::left_over || found.fault == PlanFault::makes_nothing)
        return FitsTogether<std::tuple_element_t<found.number, typename Shape::Makers>, found.number,
                            found.fault>::value;
    else
        return FitsTogether<typename Shape::template StageAt<found.number>, found.number, found.fault>::value;
}

} // namespace sluice::detail
