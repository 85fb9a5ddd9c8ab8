/// \file
/// What the stages of a pipeline exchange, from what their callables take.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/memory/span.hpp>
#include <sluice/pipeline/detail/edges.hpp>
#include <sluice/pipeline/detail/signature.hpp>

namespace sluice::detail {

/// What a slot maker makes; refuses, with a readable message, one that makes nothing.
template <class Maker>
struct SlotMadeBy {
    static constexpr bool makes = requires(Maker & make) { requires !std::is_void_v<decltype(make(0))>; };
    static_assert(
        makes, "sluice::Pipeline: a slot maker must be callable as make(int slot), and return what the two "
               "stages exchange");
    using type = std::remove_cvref_t<
        typename std::conditional_t<makes, std::invoke_result<Maker&, int>, std::type_identity<int>>::type>;
};

/// Handles that may be copied: what is written through a copy is written.
template <class T>
struct IsView : std::is_pointer<T> {};
template <class T, class B>
struct IsView<DeviceSpan<T, B>> : std::true_type {};
template <class T, class B>
struct IsView<PinnedSpan<T, B>> : std::true_type {};
template <class T, std::size_t N>
struct IsView<std::span<T, N>> : std::true_type {};

/// A parameter beside what one slot maker makes.
struct ParameterFit {
    bool exact = false;    // It is that type, by value or by reference,
    bool changes = false;  // by a reference through which it may be changed,
    bool constant = false; // by one through which it may not,
    bool copied = false;   // or by value, though it is no handle.
    bool converts = false;
};

template <class P, class Slot>
constexpr ParameterFit fit_of() {
    using Plain = std::remove_cvref_t<P>;
    constexpr bool exact = std::is_same_v<Plain, Slot>;
    return {.exact = exact,
            .changes = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>,
            .constant = std::is_lvalue_reference_v<P> && std::is_const_v<std::remove_reference_t<P>>,
            .copied = exact && !std::is_reference_v<P> && !IsView<Plain>::value,
            .converts = std::is_convertible_v<Slot&, P>};
}

inline constexpr int from_batch = -1;
inline constexpr int unresolved = -2;
inline constexpr std::size_t most_parameters = 16;

/// Where the arguments of one stage come from.
struct Binding {
    bool known = false;
    std::size_t count = 0;                       // Parameters but for the stream,
    std::array<int, most_parameters> from{};     // the stage whose output each is, or `from_batch`,
    std::array<bool, most_parameters> changes{}; // and whether it may change it.
    int maker = -1;                              // What makes its own output; -1: it has none.
};

/// What can be wrong with a list of stages and slot makers.
struct PlanFaults {
    bool not_callable = false;
    bool generic_in_shape = false;
    bool left_over = false;
    bool unread = false;
    bool unmade = false;
    bool later = false;
    bool ambiguous = false;
    bool twice = false;
    bool copied = false;
    bool changed_by_one_of_several = false;
};

template <std::size_t N>
struct Bindings {
    std::array<Binding, N> stages{};
    StageRelation<N> reads{};
    std::array<bool, N> reads_batch{};
    std::array<bool, N> unread{};
    PlanFaults faults{};
};

/// `fits[i][p][m]`: parameter p of stage i beside slot maker m.
template <std::size_t N, std::size_t M>
using FitTable = std::array<std::array<std::array<ParameterFit, M == 0 ? 1 : M>, most_parameters>, N>;

template <std::size_t N, std::size_t M>
constexpr Bindings<N> bind_stages(const FitTable<N, M>& fits, const std::array<Binding, N>& shapes) {
    Bindings<N> out;
    std::size_t makers = M; // not a constant: nvcc warns of comparisons with a constant 0
    std::size_t next = 0; // The first maker that no stage has yet.
    std::array<int, M + 1> owner{};
    for (std::size_t i = 0; i < N; ++i) {
        Binding& stage = out.stages[i];
        stage = shapes[i];
        if (!stage.known) {
            // A generic callable: as in a chain.
            out.faults.generic_in_shape = out.faults.generic_in_shape || (M + 1 != N && M != N);
            stage.from[0] = i == 0 ? from_batch : static_cast<int>(i) - 1;
            stage.count = 1;
            if (i < makers) {
                stage.from[1] = static_cast<int>(i);
                stage.count = 2;
                stage.maker = static_cast<int>(i);
                owner[next] = static_cast<int>(i);
                ++next;
            }
            if (i == 0)
                out.reads_batch[0] = true;
            else
                out.reads[i][i - 1] = true;
            continue;
        }
        // The last parameter, where it is what the next maker makes, is this stage's own output.
        if (stage.count > 0 && next < makers) {
            const auto& last = fits[i][stage.count - 1];
            bool already = false;
            for (std::size_t m = 0; m < next; ++m)
                already = already || last[m].exact || last[m].converts;
            // A stage that takes one thing only, of a type that is there already, reads it.
            const bool output = !last[next].constant && (last[next].exact || last[next].converts) &&
                                !(stage.count == 1 && already);
            if (output) {
                stage.maker = static_cast<int>(next);
                stage.from[stage.count - 1] = static_cast<int>(i);
                stage.changes[stage.count - 1] = true;
                out.faults.copied = out.faults.copied || last[next].copied;
                owner[next] = static_cast<int>(i);
                ++next;
            }
        }
        const std::size_t inputs = stage.count - (stage.maker >= 0 ? 1 : 0);
        const std::size_t made = next - (stage.maker >= 0 ? 1 : 0);
        for (std::size_t p = 0; p < inputs; ++p) {
            int exact = unresolved, converting = unresolved;
            std::size_t exact_count = 0, converting_count = 0;
            for (std::size_t m = 0; m < made; ++m) {
                if (fits[i][p][m].exact) {
                    exact = owner[m];
                    ++exact_count;
                } else if (fits[i][p][m].converts) {
                    converting = owner[m];
                    ++converting_count;
                }
            }
            const int found = exact_count > 0 ? exact : converting;
            const std::size_t count = exact_count > 0 ? exact_count : converting_count;
            if (count == 0) {
                // It is the batch, then, which is handed on as a constant.
                out.faults.unmade = out.faults.unmade || fits[i][p][0].changes;
                // Unless it is what only a later stage makes. A batch may be of the type of its reader's own output.
                bool own = i == 0;
                for (std::size_t m = made; m < next; ++m)
                    own = own || fits[i][p][m].exact;
                for (std::size_t m = next; m < makers; ++m)
                    out.faults.later = out.faults.later || (!own && fits[i][p][m].exact);
                stage.from[p] = from_batch;
                out.reads_batch[i] = true;
                continue;
            }
            // Of several outputs of one type, the neighbour's is meant: a chain. Anything else needs a tag.
            out.faults.ambiguous = out.faults.ambiguous || (count > 1 && found + 1 != static_cast<int>(i));
            for (std::size_t m = 0; m < made; ++m)
                out.faults.copied = out.faults.copied || (owner[m] == found && fits[i][p][m].copied);
            out.faults.twice = out.faults.twice || out.reads[i][static_cast<std::size_t>(found)];
            stage.from[p] = found;
            stage.changes[p] = fits[i][p][0].changes;
            out.reads[i][static_cast<std::size_t>(found)] = true;
        }
    }
    out.faults.left_over = next != M;
    for (std::size_t j = 0; j < N; ++j) {
        std::size_t readers = 0;
        bool changed = false;
        for (std::size_t i = 0; i < N; ++i) {
            if (!out.reads[i][j])
                continue;
            ++readers;
            for (std::size_t p = 0; p < out.stages[i].count; ++p)
                changed = changed || (out.stages[i].known && out.stages[i].from[p] == static_cast<int>(j) &&
                                      out.stages[i].changes[p]);
        }
        out.unread[j] = out.stages[j].maker >= 0 && readers == 0;
        // The last stage's is the pipeline's result, or its own workspace.
        out.faults.unread = out.faults.unread || (out.unread[j] && j + 1 < N);
        out.faults.changed_by_one_of_several =
            out.faults.changed_by_one_of_several || (readers > 1 && changed);
    }
    return out;
}

/// What the stages of a pipeline exchange: `StageTuple` and `MakerTuple` are tuples of its stages and slot makers.
template <class StageTuple, class MakerTuple>
class Plan {
public:
    static constexpr std::size_t stages = std::tuple_size_v<StageTuple>;
    static constexpr std::size_t makers = std::tuple_size_v<MakerTuple>;

    template <std::size_t Index>
    using Callable = typename std::tuple_element_t<Index, StageTuple>::Callable;
    template <std::size_t M>
    using Made = typename SlotMadeBy<std::tuple_element_t<M, MakerTuple>>::type;

private:
    template <std::size_t Index, class... Ps>
    static constexpr void add_fits(FitTable<stages, makers>& table, Types<Ps...>) {
        static_assert(sizeof...(Ps) <= most_parameters, "sluice::Pipeline: a stage takes at most 16 things");
        [[maybe_unused]] std::size_t p = 0;
        ((add_fit<Index, Ps>(table[Index][p]), ++p), ...);
    }
    template <std::size_t Index, class P>
    static constexpr void add_fit(std::array<ParameterFit, makers == 0 ? 1 : makers>& row) {
        if constexpr (makers == 0) {
            row[0].changes = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
        } else {
            [&]<std::size_t... Ms>(std::index_sequence<Ms...>) { ((row[Ms] = fit_of<P, Made<Ms>>()), ...); }
            (std::make_index_sequence<makers>{});
        }
    }
    static constexpr Bindings<stages> make() {
        FitTable<stages, makers> table{};
        std::array<Binding, stages> shapes{};
        [&]<std::size_t... Is>(std::index_sequence<Is...>) {
            ((shapes[Is].known = CallableTraits<Callable<Is>>::known,
              shapes[Is].count = CallableTraits<Callable<Is>>::inputs::count,
              add_fits<Is>(table, typename CallableTraits<Callable<Is>>::inputs{})),
             ...);
        }
        (std::make_index_sequence<stages>{});
        auto out = bind_stages<stages, makers>(table, shapes);
        [&]<std::size_t... Is>(std::index_sequence<Is...>) {
            out.faults.not_callable = (!MayBeCallable<Callable<Is>> || ...);
        }
        (std::make_index_sequence<stages>{});
        return out;
    }

public:
    static constexpr Bindings<stages> bindings = make();
    static constexpr Edges<stages> edges = make_edges<stages>(bindings.reads, bindings.unread);

    /// Whether stage I has an output.
    template <std::size_t Index>
    static constexpr bool has_output = bindings.stages[Index].maker >= 0;
    /// Whether the last stage's output is nobody's input: the pipeline's result.
    static constexpr bool has_result = bindings.unread[stages - 1];
    /// Whether stage I runs on the CPU, whatever the other stages' backend.
    template <std::size_t Index>
    static constexpr bool is_cpu = !CallableTraits<Callable<Index>>::takes_stream;
    /// The last stage that reads the batch; -1: none does.
    static constexpr int last_batch_reader = [] {
        int last = -1;
        for (std::size_t i = 0; i < stages; ++i)
            last = bindings.reads_batch[i] ? static_cast<int>(i) : last;
        return last;
    }();

    /// Whether all fits together.
    static constexpr bool sound = [] {
        constexpr PlanFaults faults = bindings.faults;
        return !(faults.not_callable || faults.copied || faults.generic_in_shape || faults.unmade ||
                 faults.later || faults.left_over || faults.ambiguous || faults.twice || faults.unread ||
                 faults.changed_by_one_of_several);
    }();

    /// Refuses, in a sentence, what does not fit together.
    static constexpr bool check() {
        constexpr PlanFaults faults = bindings.faults;
        static_assert(!faults.not_callable,
                      "sluice::Pipeline: a stage's callable is no callable: it has no operator()");
        static_assert(
            !faults.copied,
            "sluice::Pipeline: a stage takes a slot by value, and what it writes there would be lost; take "
            "it by reference");
        static_assert(
            !faults.generic_in_shape,
            "sluice::Pipeline: in a pipeline that is no plain chain, each stage's callable must name the "
            "types that it takes, not auto");
        static_assert(
            !faults.unmade,
            "sluice::Pipeline: a stage takes, by a reference that is not const, something that no slot maker "
            "makes for it or for an earlier stage; callables take (stream, const Batch&, const In&..., "
            "Out&)");
        static_assert(
            !faults.later || faults.unmade,
            "sluice::Pipeline: a stage takes what a later stage, or none, makes; list each stage after those "
            "whose outputs it takes");
        static_assert(
            !faults.left_over || faults.unmade || faults.copied || faults.later,
            "sluice::Pipeline: a slot maker is left over: give one for each stage whose callable's last "
            "parameter is its output, in the order of the stages");
        static_assert(
            !faults.ambiguous,
            "sluice::Pipeline: a stage takes the output of one of several earlier stages that have the same "
            "type; tell them apart with sluice::Tagged");
        static_assert(
            !faults.twice || faults.ambiguous,
            "sluice::Pipeline: a stage takes the same output twice; give what it makes a slot maker of its "
            "own, "
            "and where two stages' outputs have the same type, tell them apart with sluice::Tagged");
        static_assert(!faults.unread || faults.ambiguous || faults.twice || faults.left_over ||
                          faults.unmade || faults.later,
                      "sluice::Pipeline: no stage takes the output of a stage that is not the last one");
        static_assert(
            !faults.changed_by_one_of_several || faults.twice,
            "sluice::Pipeline: an output that several stages read must be taken as const by each of them");
        return sound;
    }
};

} // namespace sluice::detail
