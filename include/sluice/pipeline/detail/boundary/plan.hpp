// How a pipeline's shape follows from what its callables take.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <sluice/memory/span.hpp>
#include <sluice/pipeline/detail/boundary/shape.hpp>
#include <sluice/pipeline/detail/boundary/signature.hpp>

namespace sluice::detail {

/// What a slot maker makes; `int` for one that makes nothing, which is refused.
template <class Maker>
struct SlotMadeBy {
    static constexpr bool makes = requires(Maker & make) { requires !std::is_void_v<decltype(make(0))>; };
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
template <class T, std::size_t Extent>
struct IsView<std::span<T, Extent>> : std::true_type {};

/// A parameter beside what one slot maker makes.
struct ParameterFit {
    bool exact = false;    // It is that type, by value or by reference,
    bool changes = false;  // by a reference through which it may be changed,
    bool constant = false; // by one through which it may not,
    bool copied = false;   // or by value, though it is no handle.
    bool converts = false;
};

template <class Parameter, class Slot>
constexpr ParameterFit fit_of() {
    using Plain = std::remove_cvref_t<Parameter>;
    if constexpr (!std::is_same_v<typename Asked<Plain>::type, Plain>)
        return {.exact = std::is_same_v<typename Asked<Plain>::type, Slot>,
                .changes = Asked<Plain>::in_place,
                .constant = !Asked<Plain>::in_place};
    constexpr bool exact = std::is_same_v<Plain, Slot>;
    return {.exact = exact,
            .changes =
                std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>,
            .constant =
                std::is_lvalue_reference_v<Parameter> && std::is_const_v<std::remove_reference_t<Parameter>>,
            .copied = exact && !std::is_reference_v<Parameter> && !IsView<Plain>::value,
            .converts = std::is_convertible_v<Slot&, Parameter>};
}

/// `fits[i][p][m]`: parameter p of stage i beside slot maker m.
template <std::size_t Count, std::size_t MakerCount>
using FitTable =
    std::array<std::array<std::array<ParameterFit, MakerCount == 0 ? 1 : MakerCount>, most_parameters>,
               Count>;

/// Finds whose output each parameter is, stage by stage.
template <std::size_t Count, std::size_t MakerCount>
struct Binder {
    const FitTable<Count, MakerCount>& fits;
    Bindings<Count> out{};
    std::size_t makers = MakerCount; // Not a constant: nvcc warns of comparisons with a constant 0.
    std::size_t next = 0;            // The first maker that no stage has yet.
    std::array<int, MakerCount + 1> owner{};

    constexpr void note(bool is, PlanFault fault, std::size_t number) {
        FoundFault& found = out.found;
        if (is && (found.fault == PlanFault::none || fault < found.fault))
            found = {fault, number};
    }
    constexpr void give_maker(std::size_t i) {
        out.stages[i].maker = static_cast<int>(next);
        owner[next] = static_cast<int>(i);
        ++next;
    }

    // A generic callable: as in a chain.
    constexpr void bind_generic(std::size_t i) {
        Binding& stage = out.stages[i];
        note(MakerCount + 1 != Count && MakerCount != Count, PlanFault::generic_in_shape, i);
        stage.from[0] = i == 0 ? from_batch : static_cast<int>(i) - 1;
        stage.count = 1;
        if (i < makers) {
            stage.from[1] = static_cast<int>(i);
            stage.count = 2;
            give_maker(i);
            stage.maker = static_cast<int>(i);
        }
        if (i == 0) {
            out.reads_batch[0] = true;
        } else {
            out.reads[i][i - 1] = true;
            out.holds[i][i - 1] = 1;
        }
    }

    // The last parameter, where it is what the next maker makes, is this stage's own output.
    constexpr void bind_output(std::size_t i) {
        Binding& stage = out.stages[i];
        if (stage.count == 0 || next >= makers)
            return;
        std::size_t at = stage.count, things = 0;
        for (std::size_t p = 0; p < stage.count; ++p) {
            at = stage.told[p] != 0 ? at : p;
            things += stage.told[p] != 0 ? 0u : 1u;
        }
        if (things == 0 || stage.window[at] != 0 || stage.in_place[at])
            return;
        const auto& last = fits[i][at];
        bool already = false;
        for (std::size_t m = 0; m < next; ++m)
            already = already || last[m].exact || last[m].converts;
        // A stage that takes one thing only, of a type that is there already, reads it.
        if (last[next].constant || !(last[next].exact || last[next].converts) || (things == 1 && already))
            return;
        stage.from[at] = static_cast<int>(i);
        stage.changes[at] = true;
        stage.output = static_cast<int>(at);
        note(last[next].copied, PlanFault::copied, i);
        give_maker(i);
    }

    constexpr void bind_inputs(std::size_t i) {
        Binding& stage = out.stages[i];
        const bool makes = stage.maker >= 0;
        const std::size_t made = next - (makes ? 1 : 0);
        for (std::size_t p = 0; p < stage.count; ++p) {
            if (stage.told[p] != 0)
                stage.from[p] = stage.told[p];
            if (stage.told[p] != 0 || static_cast<int>(p) == stage.output)
                continue;
            const auto& fit = fits[i][p];
            int exact = from_batch, converting = from_batch;
            std::size_t exact_count = 0, converting_count = 0;
            for (std::size_t m = 0; m < made; ++m) {
                if (fit[m].exact) {
                    exact = owner[m];
                    ++exact_count;
                } else if (fit[m].converts) {
                    converting = owner[m];
                    ++converting_count;
                }
            }
            const int found = exact_count > 0 ? exact : converting;
            const std::size_t count = exact_count > 0 ? exact_count : converting_count;
            if (count == 0) {
                note(stage.window[p] != 0 || stage.in_place[p], PlanFault::of_the_batch, i);
                bind_batch(i, p, made);
                continue;
            }
            // Of several outputs of one type, the neighbour's is meant: a chain. Anything else needs a tag.
            note(count > 1 && found + 1 != static_cast<int>(i), PlanFault::ambiguous, i);
            for (std::size_t m = 0; m < made; ++m)
                note(owner[m] == found && fit[m].copied, PlanFault::copied, i);
            note(out.reads[i][static_cast<std::size_t>(found)], PlanFault::twice, i);
            stage.from[p] = found;
            stage.changes[p] = fit[0].changes || stage.in_place[p];
            out.reads[i][static_cast<std::size_t>(found)] = true;
            const int maker = out.stages[static_cast<std::size_t>(found)].maker;
            hold(i, maker, stage.window[p] > 1 ? stage.window[p] : 1);
            if (!stage.in_place[p])
                continue;
            note(makes || stage.hands_on, PlanFault::in_place_and_output, i);
            stage.maker = maker;
            stage.hands_on = true;
        }
        // Later ones get it from here.
        if (stage.hands_on)
            owner[static_cast<std::size_t>(stage.maker)] = static_cast<int>(i);
    }

    // Stage i takes what a maker's slot holds of so many batches.
    constexpr void hold(std::size_t i, int maker, std::size_t batches) {
        for (std::size_t j = 0; j < i; ++j) {
            if (out.stages[j].maker == maker && !out.stages[j].hands_on)
                out.holds[i][j] = batches;
        }
        out.most_window = batches > out.most_window ? batches : out.most_window;
    }

    // Parameter p of stage i is the batch, which is handed on as a constant: no stage before makes it.
    constexpr void bind_batch(std::size_t i, std::size_t p, std::size_t made) {
        const auto& fit = fits[i][p];
        note(fit[0].changes, PlanFault::unmade, i);
        // Unless it is what only a later stage makes. A batch may be of the type of its reader's own output.
        bool own = i == 0;
        for (std::size_t m = made; m < next; ++m)
            own = own || fit[m].exact;
        for (std::size_t m = next; m < makers; ++m)
            note(!own && fit[m].exact, PlanFault::later, i);
        out.stages[i].from[p] = from_batch;
        out.reads_batch[i] = true;
    }

    // Who reads what stage j makes.
    constexpr void look_at_readers(std::size_t j) {
        std::size_t readers = 0, changing = Count;
        for (std::size_t i = 0; i < Count; ++i) {
            if (!out.reads[i][j])
                continue;
            ++readers;
            const Binding& reader = out.stages[i];
            for (std::size_t p = 0; p < reader.count; ++p) {
                if (reader.known && reader.from[p] == static_cast<int>(j) && reader.changes[p])
                    changing = i;
            }
        }
        out.unread[j] = out.stages[j].maker >= 0 && readers == 0;
        // The last stage's is the pipeline's result, or its own workspace.
        note(out.unread[j] && j + 1 < Count, PlanFault::unread, j);
        note(readers > 1 && changing < Count, PlanFault::changed_by_one_of_several, changing);
    }
};

template <std::size_t Count, std::size_t MakerCount>
constexpr Bindings<Count>
bind_stages(const FitTable<Count, MakerCount>& fits, const std::array<Binding, Count>& signatures,
            const std::array<bool, Count>& callable, const std::array<bool, MakerCount + 1>& makes) {
    Binder<Count, MakerCount> binder{fits};
    for (std::size_t i = 0; i < Count; ++i) {
        binder.out.stages[i] = signatures[i];
        binder.note(!callable[i], PlanFault::not_callable, i);
        if (signatures[i].known) {
            binder.bind_output(i);
            binder.bind_inputs(i);
        } else {
            binder.bind_generic(i);
        }
    }
    for (std::size_t maker = 0; maker < binder.makers; ++maker)
        binder.note(!makes[maker], PlanFault::makes_nothing, maker);
    binder.note(binder.next != MakerCount, PlanFault::left_over, binder.next);
    for (std::size_t j = 0; j < Count; ++j)
        binder.look_at_readers(j);
    return binder.out;
}

template <class Makers, class Parameter>
constexpr auto fits_of() {
    return []<std::size_t... Ms>(std::index_sequence<Ms...>) {
        constexpr std::size_t makers = sizeof...(Ms);
        std::array<ParameterFit, makers == 0 ? 1 : makers> row{};
        if constexpr (makers == 0)
            row[0].changes =
                std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>;
        else
            ((row[Ms] = fit_of<Parameter, typename SlotMadeBy<std::tuple_element_t<Ms, Makers>>::type>()),
             ...);
        return row;
    }
    (std::make_index_sequence<std::tuple_size_v<Makers>>{});
}
template <class Makers, class Row, class... Ps>
constexpr void add_fits(Row& table, [[maybe_unused]] Binding& stage, Types<Ps...>) {
    static_assert(sizeof...(Ps) <= most_parameters, "sluice::Pipeline: a stage takes at most 16 things");
    [[maybe_unused]] std::size_t p = 0;
    ((table[p] = fits_of<Makers, Ps>(), stage.window[p] = Asked<std::remove_cvref_t<Ps>>::window,
      stage.in_place[p] = Asked<std::remove_cvref_t<Ps>>::in_place,
      stage.told[p] = Asked<std::remove_cvref_t<Ps>>::told, ++p),
     ...);
}

template <class StageTuple, class MakerTuple>
constexpr Bindings<std::tuple_size_v<StageTuple>> make_bindings() {
    return []<std::size_t... Is>(std::index_sequence<Is...>) {
        constexpr std::size_t stages = sizeof...(Is), makers = std::tuple_size_v<MakerTuple>;
        FitTable<stages, makers> fits{};
        std::array<Binding, stages> signatures{};
        std::array<bool, stages> callable{};
        // No name of a type is declared in here: g++'s -Wshadow would warn of the user's that is called the same.
        const auto add = [&]<class Function>(std::size_t stage, std::type_identity<Function>) {
            callable[stage] = MayBeCallable<Function>;
            signatures[stage].known = CallableTraits<Function>::known;
            signatures[stage].count = CallableTraits<Function>::inputs::count;
            add_fits<MakerTuple>(fits[stage], signatures[stage], typename CallableTraits<Function>::inputs{});
        };
        (add(Is, std::type_identity<typename std::tuple_element_t<Is, StageTuple>::Callable>{}), ...);
        const auto makes = []<std::size_t... Ms>(std::index_sequence<Ms...>) {
            return std::array<bool, makers + 1>{SlotMadeBy<std::tuple_element_t<Ms, MakerTuple>>::makes...};
        }
        (std::make_index_sequence<makers>{});
        return bind_stages<stages, makers>(fits, signatures, callable, makes);
    }
    (std::make_index_sequence<std::tuple_size_v<StageTuple>>{});
}

template <std::size_t Count>
constexpr Edges<Count> make_edges(const Bindings<Count>& bindings) {
    const StageRelation<Count>& reads = bindings.reads;
    Edges<Count> edges;
    // Whom a stage's own work on a batch comes after: of this batch, and of the one before in the same slots.
    StageRelation<Count> after{};
    StageRelation<Count> after_former{};
    for (std::size_t i = 0; i < Count; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (!reads[i][j])
                continue;
            after[i][j] = true;
            if (edges.depth[i] < edges.depth[j] + 1)
                edges.depth[i] = edges.depth[j] + 1;
            for (std::size_t k = 0; k < j; ++k)
                after[i][k] = after[i][k] || after[j][k];
        }
    }
    for (std::size_t i = 0; i < Count; ++i) {
        for (std::size_t own = 0; own < Count; ++own) {
            if (own != i && !after[i][own])
                continue;
            for (std::size_t reader = 0; reader < Count; ++reader) {
                if (!bindings.takes_slot_of(reader, own))
                    continue;
                after_former[i][reader] = true;
                for (std::size_t k = 0; k < Count; ++k)
                    after_former[i][k] = after_former[i][k] || after[reader][k];
            }
        }
    }
    for (std::size_t i = 0; i < Count; ++i) {
        for (std::size_t j = 0; j < Count; ++j) {
            bool same = reads[i][j];
            bool former = bindings.takes_slot_of(j, i);
            for (std::size_t k = 0; k < Count; ++k) {
                same = same && !(reads[i][k] && after[k][j]);
                former = former && !(reads[i][k] && after_former[k][j]) &&
                         !(bindings.takes_slot_of(k, i) && after[k][j]);
            }
            // What others imply ends with the batch that was in the slot.
            if (bindings.holds[j][i] > 1) {
                former = true;
                edges.ahead[i][j] = bindings.holds[j][i] - 1;
            }
            edges.same[i][j] = same;
            // Of a stage that neither takes nor gives anything, its lanes know nothing of each other.
            edges.former[i][j] = former || (i == j && (bindings.unread[i] || !after_former[i][i]));
            edges.awaited[j] = edges.awaited[j] || edges.same[i][j] || edges.former[i][j];
        }
    }
    return edges;
}

} // namespace sluice::detail
