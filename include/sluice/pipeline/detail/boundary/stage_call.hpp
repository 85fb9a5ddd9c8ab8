// The one place that calls a stage's callable, and what a pipeline's core is told of its stages and slots.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/batch_ops.hpp>
#include <sluice/pipeline/detail/boundary/shape.hpp>
#include <sluice/pipeline/stage.hpp>

namespace sluice::detail {

/// The value number `Index`: `static_cast<EachOne<Index, T>&>(each).value`.
template <std::size_t Index, class T>
struct EachOne {
    T value;
};
template <class Indices, class... Ts>
struct EachOf;
template <std::size_t... Is, class... Ts>
struct EachOf<std::index_sequence<Is...>, Ts...> : EachOne<Is, Ts>... {};
template <class... Ts>
using Each = EachOf<std::index_sequence_for<Ts...>, Ts...>;

/// Calls one stage's callable for one type of batch: with the stream, if it takes one, and the batch and slots that it takes.
/// `slots` has the batch's slot of each maker.
template <Backend B>
struct StageCall {
    using OnStream = void (*)(void* callable, BasicStreamRef<B> stream, void* const* slots,
                              const void* batch);
    using OnThread = void (*)(void* callable, BasicStreamRef<Host> stream, void* const* slots,
                              const void* batch);
    OnStream on_stream = nullptr; ///< Null for a stage that runs on threads beside the backend's streams.
    OnThread on_thread = nullptr; ///< Null for others.
};

/// A batch, whatever its type, as a pipeline's stages take it.
template <Backend B>
struct GivenBatch {
    const void* value = nullptr;
    const BatchOps* ops = nullptr;
    const StageCall<B>* calls = nullptr; ///< a stage each
};

/// The calls of a pipeline's stages for one type of batch.
template <class Shape, class Batch>
class StageCalls {
    using B = typename Shape::backend;

    // What parameter `Position` of a stage refers to: the batch, or a slot of a maker.
    template <std::size_t Index, std::size_t Position>
    static constexpr int from = Shape::bindings.stages[Index].from[Position];
    template <std::size_t Index, std::size_t Position>
    static constexpr std::size_t maker_of = [] {
        constexpr int of = from<Index, Position>;
        return of < 0 ? std::size_t{0}
                      : static_cast<std::size_t>(Shape::bindings.stages[static_cast<std::size_t>(of)].maker);
    }();
    template <std::size_t Index, std::size_t Position, int From = from<Index, Position>>
    struct Referred {
        using type = typename Shape::template Made<maker_of<Index, Position>>;
    };
    template <std::size_t Index, std::size_t Position>
    struct Referred<Index, Position, from_batch> {
        using type = const Batch;
    };
    template <std::size_t Index, std::size_t Position>
    struct Referred<Index, Position, from_turn> {
        using type = const Turn;
    };
    template <std::size_t Index, std::size_t Position>
    struct Referred<Index, Position, from_lane> {
        using type = const Lane;
    };
    // Where it is.
    template <std::size_t Index, std::size_t Position>
    static constexpr bool is_batch = from<Index, Position> == from_batch;
    template <std::size_t Index, std::size_t Position>
    static constexpr std::size_t window = Shape::bindings.stages[Index].window[Position];
    template <std::size_t Index, std::size_t Position>
    static constexpr bool in_place = Shape::bindings.stages[Index].in_place[Position];
    template <std::size_t Index, std::size_t Position>
    static constexpr std::size_t place_of =
        from<Index, Position>
            <from_batch ? Shape::bindings.told_place_of(Index, from<Index, Position>, Shape::makers)
                        : window<Index, Position>> 1
            ? Shape::bindings.place_of(maker_of<Index, Position>, Shape::makers)
            : maker_of<Index, Position>;

    // What a stage is handed, which lives as long as its call: what `Referred` says, or what stands for its slots.
    template <class Object, std::size_t Window, bool InPlaceOfIt>
    struct Handed {
        Object& object;
        explicit Handed(void* const* place) noexcept : object(*static_cast<Object*>(*place)) {}
        Object& get() noexcept { return object; }
    };
    template <class Object, std::size_t Window>
    struct Handed<Object, Window, true> {
        InPlace<Object> object;
        explicit Handed(void* const* place) noexcept : object(*static_cast<Object*>(*place)) {}
        InPlace<Object>& get() noexcept { return object; }
    };
    template <class Object, std::size_t Window>
    requires(Window > 1) struct Handed<Object, Window, false> {
        Last<static_cast<int>(Window), Object> object;
        explicit Handed(void* const* place) noexcept : object(place) {}
        const Last<static_cast<int>(Window), Object>& get() noexcept { return object; }
    };
    template <std::size_t Index, std::size_t Position>
    using HandedTo =
        Handed<typename Referred<Index, Position>::type, window<Index, Position>, in_place<Index, Position>>;
    template <std::size_t Index, std::size_t Position>
    using Argument = decltype(std::declval<HandedTo<Index, Position>&>().get());

    template <std::size_t Index, class Stream, class Positions>
    struct Call;
    template <std::size_t Index, class Stream, std::size_t... Ps>
    struct Call<Index, Stream, std::index_sequence<Ps...>> {
        using Function = typename Shape::template StageAt<Index>::Callable;
        static constexpr bool on_cpu = Shape::template is_cpu<Index>;
        static constexpr bool fits = on_cpu ? std::invocable<Function&, Argument<Index, Ps>...>
                                            : std::invocable<Function&, Stream, Argument<Index, Ps>...>;
        static constexpr bool plain = !((window<Index, Ps> > 1 || in_place<Index, Ps>) || ...);
        // Whether a reference is to a number that is made of a slot's for the call, and gone when the stage's work runs.
        template <class Parameter, std::size_t Position>
        static constexpr bool is_to_copy =
            std::is_reference_v<Parameter>&& std::is_arithmetic_v<std::remove_cvref_t<Parameter>> &&
            !is_batch<Index, Position> &&
            !std::is_same_v<std::remove_cvref_t<Parameter>,
                            std::remove_cv_t<typename Referred<Index, Position>::type>>;
        template <class... Parameters>
        static constexpr bool refers_to_copy(Types<Parameters...>) {
            if constexpr (sizeof...(Parameters) == sizeof...(Ps))
                return (is_to_copy<Parameters, Ps> || ...);
            return false;
        }

        static void call(void* at, [[maybe_unused]] Stream stream, [[maybe_unused]] void* const* slots,
                         const void* batch) {
            static_assert(fits || !Shape::sound || !on_cpu,
                          "sluice::Pipeline: a CPU stage's callable does not take the batch that is "
                          "submitted, or what earlier stages make");
            static_assert(
                fits || !Shape::sound || on_cpu,
                "sluice::Pipeline: a stage's callable must take (stream, const Batch&, const In&..., Out&): "
                "the batch that is submitted, what earlier stages make, and last its own slot");
            static_assert(!fits || on_cpu || !refers_to_copy(typename CallableTraits<Function>::inputs{}),
                          "sluice::Pipeline: a stage on a stream takes a slot's number by a reference to "
                          "another type, such as const double& of a float: that is a copy, gone when the "
                          "stage's work runs; name the slot's own type");
            [[maybe_unused]] void* of_batch = const_cast<void*>(batch);
            auto& callable = *static_cast<Function*>(at);
            // Plain ones without a function each, which every program would compile.
            if constexpr (fits && plain && on_cpu)
                callable(*static_cast<std::remove_reference_t<Argument<Index, Ps>>*>(
                    is_batch<Index, Ps> ? of_batch : slots[place_of<Index, Ps>])...);
            else if constexpr (fits && plain)
                callable(stream, *static_cast<std::remove_reference_t<Argument<Index, Ps>>*>(
                                     is_batch<Index, Ps> ? of_batch : slots[place_of<Index, Ps>])...);
            else if constexpr (fits && on_cpu)
                callable(HandedTo<Index, Ps>(is_batch<Index, Ps> ? &of_batch : slots + place_of<Index, Ps>)
                             .get()...);
            else if constexpr (fits)
                callable(stream,
                         HandedTo<Index, Ps>(is_batch<Index, Ps> ? &of_batch : slots + place_of<Index, Ps>)
                             .get()...);
        }
    };
    template <std::size_t Index, class Stream>
    using Called = Call<Index, Stream, std::make_index_sequence<Shape::bindings.stages[Index].count>>;
    template <std::size_t Index>
    static constexpr StageCall<B> call_of() noexcept {
        if constexpr (Shape::template runs_aside<Index>)
            return {.on_stream = nullptr, .on_thread = &Called<Index, BasicStreamRef<Host>>::call};
        else
            return {.on_stream = &Called<Index, BasicStreamRef<B>>::call, .on_thread = nullptr};
    }
    template <class Indices>
    struct Table;
    template <std::size_t... Is>
    struct Table<std::index_sequence<Is...>> {
        static constexpr StageCall<B> calls[] = {call_of<Is>()...};
    };

public:
    /// A stage each.
    static constexpr const StageCall<B>* all = Table<std::make_index_sequence<Shape::stages>>::calls;
};

/// What a pipeline's core is told of a stage.
template <Backend B>
struct StageSetup {
    const std::string* name = nullptr;
    void* callable = nullptr; ///< Null: an empty one.
    StageOptions<B> options{};
    bool has_foreign_stream = false; ///< One of another backend's, as a CPU stage's options may name.
    const DeclaredRanges* declared = nullptr; ///< See `Stage::reads`; of a checked backend's.
};

/// Makes a stage's setup.
struct StageAccess {
    template <Backend B, class Function, Backend Own>
    static StageSetup<B> setup_of(Stage<Function, Own>& stage) {
        StageSetup<B> setup{.name = &stage.name_,
                            .callable = is_empty(stage.callable_) ? nullptr : &stage.callable_};
        if constexpr (std::is_same_v<Own, B>) {
            setup.options = stage.options_;
        } else {
            // Named: nvcc 13.0 loses the members' names of a list that is assigned within a template.
            setup.options = StageOptions<B>{.priority = stage.options_.priority,
                                            .graphed = stage.options_.graphed,
                                            .device = stage.options_.device,
                                            .lanes = stage.options_.lanes,
                                            .every = stage.options_.every,
                                            .keeps_slot = stage.options_.keeps_slot,
                                            .multiprocessors = stage.options_.multiprocessors};
            setup.has_foreign_stream = stage.options_.stream.has_value();
        }
        setup.declared = stage.declared_.kept();
        return setup;
    }
};

/// What it is told of a stage's slots.
struct SlotSetup {
    void* maker = nullptr;
    const SlotOps* ops = nullptr;
};

/// All of a pipeline's, one for each stage and slot maker.
template <Backend B>
struct PipelineSetup {
    const StageSetup<B>* stages;
    const SlotSetup* slots;
};
/// The same of a shape, for the length of a pipeline's constructor.
template <class Shape, class Stages = std::make_index_sequence<Shape::stages>,
          class Makers = std::make_index_sequence<Shape::makers>>
class Setups;
template <class Shape, std::size_t... Is, std::size_t... Ms>
class Setups<Shape, std::index_sequence<Is...>, std::index_sequence<Ms...>> {
    using B = typename Shape::backend;
    template <std::size_t Index>
    using StageOne = EachOne<Index, typename Shape::template StageAt<Index>>;
    template <std::size_t Index>
    using MakerAt = std::tuple_element_t<Index, typename Shape::Makers>;

public:
    template <class AllStages, class AllMakers>
    Setups(AllStages& stages, [[maybe_unused]] AllMakers& makers)
        : stages_{StageAccess::setup_of<B>(static_cast<StageOne<Is>&>(stages).value)...},
          slots_{{&static_cast<EachOne<Ms, MakerAt<Ms>>&>(makers).value, ops_of<Ms>()}...} {}

    operator PipelineSetup<B>() const noexcept { return {stages_, slots_}; }

private:
    template <std::size_t M>
    static constexpr const SlotOps* ops_of() noexcept {
        if constexpr (Shape::sound)
            return &slot_ops<MakerAt<M>, typename Shape::template Made<M>, B>;
        else
            return nullptr;
    }

    StageSetup<B> stages_[Shape::stages];
    SlotSetup slots_[Shape::makers + 1]; // of none: an array is never empty
};

} // namespace sluice::detail
