// What the compiler says of stages and slot makers that do not fit together.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/pipeline/detail/boundary/batch_traits.hpp>
#include <sluice/pipeline/detail/boundary/shape.hpp>
#include <sluice/pipeline/stage.hpp>

namespace sluice::detail {

/// Refuses, in a sentence, what does not fit together. The compiler names `Culprit`, the stage or slot maker that it is
/// about, and its number, with the message.
template <class Culprit, std::size_t Number, PlanFault Fault>
struct FitsTogether {
    static_assert(Fault != PlanFault::makes_nothing,
                  "sluice::Pipeline: a slot maker must be callable as make(int slot), and return what the "
                  "two stages exchange");
    static_assert(Fault != PlanFault::not_callable,
                  "sluice::Pipeline: a stage's callable is no callable: it has no operator()");
    static_assert(Fault != PlanFault::copied, "sluice::Pipeline: a stage takes a slot by value, and what it "
                                              "writes there would be lost; take it by reference");
    static_assert(Fault != PlanFault::generic_in_shape,
                  "sluice::Pipeline: in a pipeline that is no plain chain, each stage's callable must name "
                  "the types that it takes, not auto");
    static_assert(
        Fault != PlanFault::unmade,
        "sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker "
        "makes for it or for an earlier stage; callables take (stream, const Batch&, const In&..., Out&)");
    static_assert(Fault != PlanFault::later, "sluice::Pipeline: a stage takes what a later stage, or none, "
                                             "makes; list each stage after those whose outputs it takes");
    static_assert(Fault != PlanFault::left_over,
                  "sluice::Pipeline: a slot maker is left over: give one for each stage whose callable's "
                  "last parameter is its output, in the order of the stages");
    static_assert(Fault != PlanFault::ambiguous,
                  "sluice::Pipeline: a stage takes the output of one of several earlier stages that have the "
                  "same type; tell them apart with sluice::Tagged");
    static_assert(
        Fault != PlanFault::twice,
        "sluice::Pipeline: a stage takes the same output twice; give what it makes a slot maker of its own, "
        "and where two stages' outputs have the same type, tell them apart with sluice::Tagged");
    static_assert(Fault != PlanFault::of_the_batch,
                  "sluice::Pipeline: a stage takes sluice::Last or sluice::InPlace of something that no "
                  "earlier stage makes; the batch itself can be taken as it is alone");
    static_assert(Fault != PlanFault::in_place_and_output,
                  "sluice::Pipeline: a stage changes a slot in place, which is its output then, and makes or "
                  "changes another one; let another stage do that");
    static_assert(Fault != PlanFault::unread,
                  "sluice::Pipeline: no stage takes the output of a stage that is not the last one");
    static_assert(
        Fault != PlanFault::changed_by_one_of_several,
        "sluice::Pipeline: an output that several stages read must be taken as const by each of them");
    static_assert(
        Fault != PlanFault::device_memory_on_cpu,
        "sluice::Pipeline: a stage's callable takes no stream, so it runs on the CPU, and is handed device "
        "memory, which the host cannot read; let it take (stream, ...), or hand it a PinnedBuffer");
    static_assert(Fault != PlanFault::returned,
                  "sluice::Pipeline: a stage returns what another one takes, and what a stage returns is "
                  "ignored; let it take its output as its last parameter, by reference, and write there");
    using type = void;
};

template <class Result, class... Inputs>
constexpr bool is_taken(Types<Inputs...>) {
    return (std::is_same_v<Result, std::remove_cvref_t<Inputs>> || ...);
}
/// The first stage that returns what a stage takes; as many as there are: none does.
template <class Shape, std::size_t... Is>
constexpr std::size_t find_returned(std::index_sequence<Is...>) {
    const auto returned = []<class Result>(std::type_identity<Result>) {
        return std::is_class_v<Result> &&
               (is_taken<Result>(
                    typename CallableTraits<typename Shape::template StageAt<Is>::Callable>::inputs{}) ||
                ...);
    };
    std::size_t found = 0;
    (void)((returned(std::type_identity<
                     typename Signature<typename Shape::template StageAt<Is>::Callable>::result>{}) ||
            (++found, false)) ||
           ...);
    return found;
}

/// Whether a value is, or shows itself to have nothing but, device memory.
template <class Value>
constexpr bool is_device_memory() {
    using T = typename WithoutTag<Value>::type;
    if constexpr (requires {
                      typename T::backend;
                      typename T::element_type;
                  }) {
        return std::is_same_v<T, DeviceSpan<typename T::element_type, typename T::backend>>;
    } else if constexpr (
        requires {
            typename T::backend;
            typename T::value_type;
        } &&
        !requires(const T& value) { value.values(); }) {
        return std::is_same_v<T, DeviceBuffer<typename T::value_type, typename T::backend>>;
    } else if constexpr (requires(const T& value) {
                             typename T::backend;
                             value.values().data();
                         }) {
        return is_device_memory<std::remove_cvref_t<decltype(std::declval<const T&>().values())>>();
    } else if constexpr (IsStdArray<T>::value) {
        return is_device_memory<typename T::value_type>();
    } else if constexpr (std::is_empty_v<T>) {
        return false;
    } else if constexpr (PlainAggregate<T>) {
        using AllAre = decltype(with_members(std::declval<const T&>(), [](const auto&... members) {
            return std::bool_constant<(is_device_memory<std::remove_cvref_t<decltype(members)>>() && ...)>{};
        }));
        return AllAre::value;
    } else {
        return false;
    }
}

/// Whether a callable on the CPU is handed device memory. One that takes a stream of `Host` is, beside a device's stages.
template <class Callable, class B, class... Inputs>
constexpr bool reads_device_memory_on_cpu(Types<Inputs...>) {
    using Traits = CallableTraits<Callable>;
    constexpr bool on_cpu = !Traits::takes_stream || !(std::is_same_v<typename Traits::backend, B>);
    return on_cpu && (is_device_memory<typename Asked<std::remove_cvref_t<Inputs>>::type>() || ...);
}

template <class Shape, std::size_t... Is>
constexpr FoundFault find_device_memory_on_cpu(std::index_sequence<Is...>) {
    FoundFault found;
    ((found.fault == PlanFault::none &&
              reads_device_memory_on_cpu<typename Shape::template StageAt<Is>::Callable,
                                         typename Shape::backend>(
                  typename CallableTraits<typename Shape::template StageAt<Is>::Callable>::inputs{})
          ? void(found = {PlanFault::device_memory_on_cpu, Is})
          : void()),
     ...);
    return found;
}

/// Fails to compile where a shape's stages don't fit together. `lacks_makers`: that is said elsewhere.
template <class Shape, bool lacks_makers = false>
constexpr auto fits_together() {
    constexpr FoundFault found =
        lacks_makers   ? FoundFault{}
        : Shape::sound ? find_device_memory_on_cpu<Shape>(std::make_index_sequence<Shape::stages>{})
                       : Shape::bindings.found;
    constexpr bool lacks_output = found.fault == PlanFault::later || found.fault == PlanFault::unmade ||
                                  found.fault == PlanFault::left_over;
    constexpr std::size_t returned =
        lacks_output ? find_returned<Shape>(std::make_index_sequence<Shape::stages>{}) : Shape::stages;
    if constexpr (returned < Shape::stages)
        return FitsTogether<typename Shape::template StageAt<returned>, returned, PlanFault::returned>{};
    else if constexpr (found.fault == PlanFault::left_over || found.fault == PlanFault::makes_nothing)
        return FitsTogether<std::tuple_element_t<found.number, typename Shape::Makers>, found.number,
                            found.fault>{};
    else
        return FitsTogether<typename Shape::template StageAt<found.number>, found.number, found.fault>{};
}

} // namespace sluice::detail
