// A pipeline's shape: what each stage reads, which stages wait for which, and where they run. The one list from which
// every schedule takes its order.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/boundary/signature.hpp>

namespace sluice::detail {

inline constexpr std::size_t most_parameters = 16;

/// Where the arguments of one stage come from.
struct Binding {
    bool known = false;
    std::size_t count = 0; // Parameters but for the stream,
    std::array<int, most_parameters>
        from{}; // the stage whose output each is, `from_batch`, `from_turn`, or `from_lane`,
    std::array<bool, most_parameters> changes{};       // and whether it may change it.
    std::array<std::size_t, most_parameters> window{}; // Above 1: it takes what was made of so many batches,
    std::array<bool, most_parameters> in_place{};      // or changes what was made,
    std::array<int, most_parameters> told{};           // or is told one of the latter two.
    int output = -1;                                   // Which of them is its own output; -1: none.
    int maker = -1;                                    // What makes its own output; -1: it has none.
    bool hands_on = false;                             // The output is that of an earlier stage, changed.
};

/// A relation between the stages of a pipeline: `[i][k]` is between stage i and stage k.
template <std::size_t Count>
using StageRelation = std::array<std::array<bool, Count>, Count>;

/// What can be wrong with a list of stages and slot makers. Of several, the first one is reported.
enum class PlanFault {
    none,
    makes_nothing,
    not_callable,
    copied,
    generic_in_shape,
    unmade,
    later,
    left_over,
    of_the_batch,
    in_place_and_output,
    ambiguous,
    twice,
    unread,
    changed_by_one_of_several,
    device_memory_on_cpu,
    returned,
};

/// A fault, and the number of the stage, or else of the slot maker, that has it.
struct FoundFault {
    PlanFault fault = PlanFault::none;
    std::size_t number = 0;
};

/// What each stage reads and makes.
template <std::size_t Count>
struct Bindings {
    std::array<Binding, Count> stages{};
    StageRelation<Count> reads{}; // `[i][j]`: stage i reads the output of stage j, which comes before it.
    std::array<bool, Count> reads_batch{};
    std::array<bool, Count> unread{}; // Stage i has an output that no stage reads.
    // `[i][j]`: for how many batches stage i takes the slot that stage j has made, and others may have changed.
    std::array<std::array<std::size_t, Count>, Count> holds{};
    std::size_t most_window = 1;
    FoundFault found{};

    /// Whether stage i takes the slot of stage j, changed in between or not.
    constexpr bool takes_slot_of(std::size_t i, std::size_t j) const {
        return holds[i][j] != 0 || reads[i][j];
    }
    /// The most batches of which a stage takes what a maker's slots hold.
    constexpr std::size_t window_of(std::size_t maker) const {
        std::size_t most = 1;
        for (std::size_t j = 0; j < Count; ++j) {
            for (std::size_t i = 0; i < Count; ++i) {
                if (stages[j].maker == static_cast<int>(maker) && holds[i][j] > most)
                    most = holds[i][j];
            }
        }
        return most;
    }
    /// Whether a stage is told `from_turn`, or `from_lane`.
    constexpr bool is_told(std::size_t stage, int what) const {
        bool is = false;
        for (const int told : stages[stage].told)
            is = is || told == what;
        return is;
    }
    /// Where that is found, behind all slots: stage by stage its `Turn`, then its `Lane`.
    constexpr std::size_t told_place_of(std::size_t stage, int what, std::size_t makers) const {
        std::size_t place = place_of(makers, makers);
        for (std::size_t i = 0; i <= stage; ++i) {
            place += is_told(i, from_turn) && (i < stage || what == from_lane) ? 1u : 0u;
            place += is_told(i, from_lane) && i < stage ? 1u : 0u;
        }
        return place;
    }
    /// Where a maker's slots of this batch and those before are found, behind all makers' slots of this batch: see `SlotTable`.
    constexpr std::size_t place_of(std::size_t maker, std::size_t makers) const {
        std::size_t place = makers;
        for (std::size_t m = 0; m < maker; ++m)
            place += window_of(m) > 1 ? window_of(m) : 0;
        return place;
    }
};

/// The waits of a pipeline, without those that others imply.
///
/// Stage i works on a batch after each stage whose output it reads has done so (`same[i][j]`), and after each reader k
/// of its own slot is done with the batch that was in the slot before (`former[i][k]`), and with the `ahead[i][k]` ones behind
/// that which still take it.
template <std::size_t Count>
struct Edges {
    StageRelation<Count> same{};
    StageRelation<Count> former{};
    std::array<std::array<std::size_t, Count>, Count> ahead{};
    /// Whether any stage or batch waits for stage i.
    std::array<bool, Count> awaited{};
    /// How many stages must have come first, on the longest way.
    std::array<std::size_t, Count> depth{};
};

// Found in plan.hpp, from the types that the callables take.
template <class StageTuple, class MakerTuple>
constexpr Bindings<std::tuple_size_v<StageTuple>> make_bindings();
template <std::size_t Count>
constexpr Edges<Count> make_edges(const Bindings<Count>& bindings);
template <class Maker>
struct SlotMadeBy;

/// The backend of a pipeline: that of its GPU stages, `Host` where there is none.
template <class... Ss>
struct PipelineBackend {
    using type = Host;
};
template <class First, class... Ss>
struct PipelineBackend<First, Ss...> {
    using type = typename std::conditional_t<!CallableTraits<typename First::Callable>::takes_stream ||
                                                 std::is_same_v<typename First::backend, Host>,
                                             PipelineBackend<Ss...>,
                                             std::type_identity<typename First::backend>>::type;
};

/// What the last stage of a shape makes, if no stage reads it. Of stages that don't fit together that is not known, and all
/// that is to be said is why they don't.
template <class Shape, bool = Shape::has_result>
struct ResultOf {
    using type = std::conditional_t<Shape::sound, void, std::nullptr_t>;
};
template <class Shape>
struct ResultOf<Shape, true> {
    static constexpr int maker = Shape::bindings.stages[Shape::stages - 1].maker;
    using type = typename Shape::template Made<static_cast<std::size_t>(maker)>;
};

/// Whether a backend's streams are threads: CPU stages run on streams of it like any other.
template <class B>
inline constexpr bool streams_are_threads = std::is_same_v<typename B::NativeStream, host::Queue*>;

/// `StageTuple` and `MakerTuple` are tuples of a pipeline's stages and slot makers.
template <class StageTuple, class MakerTuple, Backend B>
struct Shape {
    using Makers = MakerTuple;
    using backend = B;
    static constexpr std::size_t stages = std::tuple_size_v<StageTuple>;
    static constexpr std::size_t makers = std::tuple_size_v<MakerTuple>;

    template <std::size_t Index>
    using StageAt = std::tuple_element_t<Index, StageTuple>;
    /// What a slot maker makes.
    template <std::size_t MakerIndex>
    using Made = typename SlotMadeBy<std::tuple_element_t<MakerIndex, MakerTuple>>::type;

    static constexpr Bindings<stages> bindings = make_bindings<StageTuple, MakerTuple>();
    static constexpr Edges<stages> edges = make_edges<stages>(bindings);
    /// Whether all fits together.
    static constexpr bool sound = bindings.found.fault == PlanFault::none;
    static constexpr bool lacks_makers = bindings.found.fault == PlanFault::unmade;

    /// Whether the last stage's output is no stage's input: the pipeline's result.
    static constexpr bool has_result = bindings.unread[stages - 1];
    /// Whether stage I runs on the CPU, whatever the other stages' backend.
    template <std::size_t Index>
    static constexpr bool is_cpu = !CallableTraits<typename StageAt<Index>::Callable>::takes_stream;
    static constexpr bool host_streams = streams_are_threads<B>;
    /// Stage I's callable is called on a stream's thread.
    template <std::size_t Index>
    static constexpr bool called_as_task = host_streams&& is_cpu<Index>;
    /// Stage I runs on threads beside the backend's streams.
    template <std::size_t Index>
    static constexpr bool runs_aside =
        !host_streams && (is_cpu<Index> || !std::is_same_v<typename StageAt<Index>::backend, B>);

    static constexpr std::array<bool, stages> aside = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return std::array<bool, stages>{runs_aside<Is>...};
    }
    (std::make_index_sequence<stages>{});
    static constexpr std::array<bool, stages> cpu = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return std::array<bool, stages>{is_cpu<Is>...};
    }
    (std::make_index_sequence<stages>{});
    static constexpr std::array<bool, stages> as_task = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return std::array<bool, stages>{called_as_task<Is>...};
    }
    (std::make_index_sequence<stages>{});
    /// CPU stages cannot be captured.
    static constexpr std::array<bool, stages> capturable = []<std::size_t... Is>(std::index_sequence<Is...>) {
        return std::array<bool, stages>{!(runs_aside<Is> || called_as_task<Is>)...};
    }
    (std::make_index_sequence<stages>{});
    static constexpr bool all_capturable = [] {
        bool all = true;
        for (const bool one : capturable)
            all = all && one;
        return all;
    }();
    static constexpr bool any_aside = [] {
        bool any = false;
        for (const bool one : aside)
            any = any || one;
        return any;
    }();

    /// Whether a stage i waits for stage j on another stream, or across streams and threads.
    static constexpr bool awaited_by(std::size_t j, bool through_event) {
        for (std::size_t i = 0; i < stages; ++i) {
            if ((edges.same[i][j] || edges.former[i][j]) && (through_event == !(aside[i] || aside[j])))
                return true;
        }
        return false;
    }
    /// Overlapped, stage j's end is an event for those that wait on streams, and, unless the semaphore does, for the caller that
    /// refills the batch,
    static constexpr bool needs_event(std::size_t j) {
        return !aside[j] && (awaited_by(j, true) || (bindings.reads_batch[j] && !needs_semaphore(j)));
    }
    /// and a semaphore for those that wait on threads, and for all that wait for a thread.
    static constexpr bool needs_semaphore(std::size_t j) { return awaited_by(j, false) || aside[j]; }
};

} // namespace sluice::detail

#include <sluice/pipeline/detail/boundary/plan.hpp>
