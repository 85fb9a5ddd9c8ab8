// Pipelines of any shape, whose results show any batch that is lost, doubled, late or torn, with the results that a
// plain loop gives.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/chain.hpp"

namespace sluice::test {

/// One stage of a shape.
struct DagStage {
    unsigned reads = 0;    ///< Bit j: it reads stage j's output.
    bool batch = false;    ///< It reads the batch.
    bool output = true;    ///< It makes something, which a later stage reads, or which is the result.
    bool cpu = false;      ///< It is a CPU stage.
    int window = 0;        ///< Above 1: of what it reads, it takes so many batches.
    bool in_place = false; ///< It changes the last of what it reads, which is its output then.
    int every = 1;         ///< What it makes is made of so many batches.
};

/// What stage I makes: words, and the memory of a stage that keeps none from batch to batch.
template <Backend B, std::size_t I>
struct DagOutput {
    explicit DagOutput(std::size_t count) : words(count), more(count), memory(count), memory_on_cpu(count) {}
    PinnedBuffer<Word, B> words;
    PinnedBuffer<Word, B> more; // what is of no further use
    DeviceBuffer<Word, B> memory;
    std::vector<Word> memory_on_cpu;
};

template <Backend B, DagStage... Ss>
class Dag;

/// A stage of a `Dag`, which takes `Ins`.
template <class D, std::size_t I, class Ins>
struct DagNode;
template <class D, std::size_t I, class... Ins>
struct DagNode<D, I, detail::Types<Ins...>> {
    D* dag;
    void operator()(typename D::Ref stream, Ins... ins, typename D::template Output<I>& out) const {
        Word* const memory = dag->begin(stream, I, out.memory);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            ops::step(stream.get(), out.words.data(), in, memory, dag->words);
        };
        (D::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
/// One whose output is made of several batches.
template <class D, std::size_t I, class Ins>
struct DagTurnNode;
template <class D, std::size_t I, class... Ins>
struct DagTurnNode<D, I, detail::Types<Ins...>> {
    D* dag;
    void operator()(typename D::Ref stream, Turn turn, Ins... ins,
                    typename D::template Output<I>& out) const {
        const auto take = [&](const Word* in) {
            ops::step(stream.get(), out.words.data(), in, dag->memory(I), dag->words);
        };
        if (!turn.first())
            take(out.words.data());
        (D::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
template <class D, std::size_t I, class Ins>
struct DagCpuTurnNode;
template <class D, std::size_t I, class... Ins>
struct DagCpuTurnNode<D, I, detail::Types<Ins...>> {
    D* dag;
    void operator()(Ins... ins, typename D::template Output<I>& out, const Turn& turn) const {
        const auto take = [&](const Word* in) {
            D::step_on_cpu(out.words.data(), in, dag->memory(I), dag->words);
        };
        if (!turn.first())
            take(out.words.data());
        (D::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
/// One that changes the output of an earlier stage, behind what else it takes.
template <class D, std::size_t I, class Changed, class Ins>
struct DagInPlaceNode;
template <class D, std::size_t I, class Changed, class... Ins>
struct DagInPlaceNode<D, I, Changed, detail::Types<Ins...>> {
    D* dag;
    void operator()(typename D::Ref stream, Ins... ins, InPlace<Changed>& out) const {
        Word* const memory = dag->begin(stream, I, out->memory);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            ops::step(stream.get(), out->more.data(), in, memory, dag->words);
        };
        (D::for_each_words(ins, take), ...);
        ops::step(stream.get(), out->words.data(), out->words.data(), memory, dag->words);
    }
};
template <class D, std::size_t I, class Changed, class Ins>
struct DagCpuInPlaceNode;
template <class D, std::size_t I, class Changed, class... Ins>
struct DagCpuInPlaceNode<D, I, Changed, detail::Types<Ins...>> {
    D* dag;
    void operator()(Ins... ins, InPlace<Changed>& out) const {
        Word* const memory = dag->begin_on_cpu(I, out->memory_on_cpu);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            D::step_on_cpu(out->more.data(), in, memory, dag->words);
        };
        (D::for_each_words(ins, take), ...);
        D::step_on_cpu(out->words.data(), out->words.data(), memory, dag->words);
    }
};
/// One that makes nothing.
template <class D, std::size_t I, class Ins>
struct DagSink;
template <class D, std::size_t I, class... Ins>
struct DagSink<D, I, detail::Types<Ins...>> {
    D* dag;
    void operator()(typename D::Ref stream, Ins... ins) const {
        [[maybe_unused]] const auto take = [&](const Word* in) {
            ops::step(stream.get(), dag->scratch(I), in, dag->memory(I), dag->words);
        };
        (D::for_each_words(ins, take), ...);
    }
};
/// CPU stages.
template <class D, std::size_t I, class Ins>
struct DagCpuNode;
template <class D, std::size_t I, class... Ins>
struct DagCpuNode<D, I, detail::Types<Ins...>> {
    D* dag;
    void operator()(Ins... ins, typename D::template Output<I>& out) const {
        Word* const memory = dag->begin_on_cpu(I, out.memory_on_cpu);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            D::step_on_cpu(out.words.data(), in, memory, dag->words);
        };
        (D::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
template <class D, std::size_t I, class Ins>
struct DagCpuSink;
template <class D, std::size_t I, class... Ins>
struct DagCpuSink<D, I, detail::Types<Ins...>> {
    D* dag;
    void operator()(Ins... ins) const {
        [[maybe_unused]] const auto take = [&](const Word* in) {
            D::step_on_cpu(dag->scratch(I), in, dag->memory(I), dag->words);
        };
        (D::for_each_words(ins, take), ...);
    }
};

/// Stages `Ss`, each of which passes what it reads through `ops::step` with a memory, its own or, where it has several
/// lanes, the slot's. Captured work keeps nothing on the host. Must outlive its pipelines.
template <Backend B, DagStage... Ss>
class Dag {
public:
    using backend = B;
    using Ref = BasicStreamRef<B>;
    template <std::size_t I>
    using Output = DagOutput<B, I>;
    static constexpr std::size_t stages = sizeof...(Ss);
    static constexpr std::array<DagStage, stages> shape{Ss...};
    static constexpr bool any_cpu = (Ss.cpu || ...);

    /// How stages run: lanes, multiprocessors, the device, an external stream, and whether they opt out of graphs.
    std::array<int, stages> lanes;
    std::array<int, stages> multiprocessors;
    std::array<int, stages> devices;
    std::array<std::optional<Ref>, stages> streams;
    std::array<bool, stages> graphed;
    /// The stage in whose memory each remembers what it has seen: its own, unless a test says otherwise.
    std::array<std::size_t, stages> memory_of;

    explicit Dag(std::size_t count) : words(count), memory_(stages * count), scratch_(stages * count) {
        lanes.fill(1);
        multiprocessors.fill(0);
        devices.fill(-1);
        graphed.fill(true);
        for (std::size_t stage = 0; stage < stages; ++stage)
            memory_of[stage] = stage;
        clear();
    }
    void clear() {
        for (auto* all : {&memory_, &scratch_}) {
            for (std::size_t i = 0; i < all->size(); ++i)
                (*all)[i] = 0;
        }
    }

    auto pipeline(const PipelineOptions& options) {
        return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
            auto makers = std::tuple_cat(maker<Is>()...);
            return std::apply(
                [&](auto... of_stage) {
                    return Pipeline{Stages{stage<Is>()...}, Slots{of_stage...}, options};
                },
                makers);
        }
        (std::make_index_sequence<stages>{});
    }

    /// What each stage remembers. The pipeline must have been finished.
    std::vector<Word> memories() const { return {memory_.data(), memory_.data() + memory_.size()}; }

    /// The same after `batches`, from a plain loop. With `results`, the last stage's outputs are appended there. `ends` tells
    /// whether the pipeline was finished behind so many, as it is behind all.
    std::vector<Word> expected(const std::vector<std::size_t>& batches, std::vector<Word>* results = nullptr,
                               const std::vector<std::size_t>& ends = {}) const {
        std::vector<Word> memory(stages * words, 0);
        std::vector<std::vector<Word>> all(batches.size(), std::vector<Word>(stages * words, 0));
        std::size_t begin = 0; // of what is made of several batches
        for (std::size_t number = 0; number < batches.size(); ++number) {
            bool ends_here = number + 1 == batches.size();
            for (const std::size_t end : ends)
                ends_here = ends_here || end == number + 1;
            std::vector<Word>& outs = all[number];
            if (number > 0)
                outs = all[number - 1];
            bool last_ran = false;
            for (std::size_t stage = 0; stage < stages; ++stage) {
                const std::size_t runs = batches_a_run(stage), place = number - begin;
                last_ran = ends_here || (place + 1) % runs == 0;
                for (std::size_t i = 0; last_ran && i < words; ++i)
                    run_one(stage, number, place / runs, batches[number], i, memory, all);
            }
            if (results != nullptr && last_ran)
                results->insert(results->end(), outs.end() - static_cast<std::ptrdiff_t>(words), outs.end());
            begin = ends_here ? number + 1 : begin;
        }
        return memory;
    }
    /// Batches for which a stage runs once.
    static constexpr std::size_t batches_a_run(std::size_t stage) {
        std::size_t runs = 1;
        for (std::size_t from = 0; from < stage; ++from) {
            if ((shape[stage].reads >> from & 1) != 0)
                runs = std::lcm(runs, batches_a_run(from) * static_cast<std::size_t>(shape[from].every));
        }
        return runs;
    }

    // For the stages:
    Word* memory(std::size_t stage) { return memory_.data() + memory_of[stage] * words; }
    Word* scratch(std::size_t stage) { return scratch_.data() + stage * words; }
    Word* begin(Ref stream, std::size_t stage, DeviceBuffer<Word, B>& of_slot) {
        if (keeps(stage))
            return memory(stage);
        fill_bytes(stream, of_slot, 0);
        return of_slot.data();
    }
    Word* begin_on_cpu(std::size_t stage, std::vector<Word>& of_slot) {
        if (keeps(stage))
            return memory(stage);
        for (std::size_t i = 0; i < words; ++i)
            of_slot[i] = 0;
        return of_slot.data();
    }
    static void step_on_cpu(Word* out, const Word* in, Word* memory, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const Word word = in[i];
            out[i] = next_word(memory[i], word);
            memory[i] = next_memory(memory[i], word);
        }
    }
    template <class In, class Take>
    static void for_each_words(const In& in, Take&& take) {
        if constexpr (requires { in.words.data(); })
            take(in.words.data());
        else if constexpr (requires { in.data(); })
            take(in.data());
        else
            for (int back = 0; back < in.size(); ++back)
                take(in[back].words.data());
    }

    const std::size_t words;

private:
    // One word of a stage's run, which is number `run` since the last end.
    void run_one(std::size_t stage, std::size_t number, std::size_t run, std::size_t batch, std::size_t i,
                 std::vector<Word>& memory, std::vector<std::vector<Word>>& all) const {
        std::vector<Word>& outs = all[number];
        Word own = 0;
        Word& kept = keeps(stage) ? memory[memory_of[stage] * words + i] : own;
        Word out = 0;
        const auto take = [&](Word in) {
            out = next_word(kept, in);
            kept = next_memory(kept, in);
        };
        if (run % static_cast<std::size_t>(shape[stage].every) != 0)
            take(outs[stage * words + i]);
        const std::size_t window =
            shape[stage].window > 1 ? static_cast<std::size_t>(shape[stage].window) : 1;
        for (std::size_t from = 0; from < stage; ++from) {
            if ((shape[stage].reads >> from & 1) == 0 || changed_by(stage) == from)
                continue;
            for (std::size_t back = 0; back < window && back <= number; ++back)
                take(all[number - back][from * words + i]);
        }
        if (shape[stage].batch)
            take(input_word(batch, i));
        if (shape[stage].in_place)
            take(outs[changed_by(stage) * words + i]);
        else if (shape[stage].output)
            take(out);
        outs[stage * words + i] = out;
    }
    bool keeps(std::size_t stage) const { return lanes[stage] == 1; }
    // The stage whose output a stage changes in place; of no other stage: none.
    static constexpr std::size_t changed_by(std::size_t stage) {
        std::size_t changed = stages;
        for (std::size_t from = 0; shape[stage].in_place && from < stage; ++from)
            changed = (shape[stage].reads >> from & 1) != 0 ? from : changed;
        return changed;
    }
    // The stage that has made what a stage hands on.
    static constexpr std::size_t made_by(std::size_t stage) {
        while (shape[stage].in_place)
            stage = changed_by(stage);
        return stage;
    }

    template <std::size_t I>
    auto maker() const {
        if constexpr (shape[I].output && !shape[I].in_place) {
            return std::tuple([count = words](int) { return Output<I>(count); });
        } else {
            return std::tuple<>();
        }
    }
    // What stage I takes: earlier outputs, and then the batch.
    template <std::size_t I, std::size_t J, class... Ins>
    static auto inputs_from(detail::Types<Ins...>) {
        if constexpr (J < I) {
            if constexpr ((shape[I].reads >> J & 1) != 0 && changed_by(I) != J && shape[I].window > 1)
                return inputs_from<I, J + 1>(
                    detail::Types<Ins..., const Last<shape[I].window, Output<made_by(J)>>&>{});
            else if constexpr ((shape[I].reads >> J & 1) != 0 && changed_by(I) != J)
                return inputs_from<I, J + 1>(detail::Types<Ins..., const Output<made_by(J)>&>{});
            else
                return inputs_from<I, J + 1>(detail::Types<Ins...>{});
        } else if constexpr (shape[I].batch) {
            return detail::Types<Ins..., PinnedSpan<const Word, B>>{};
        } else {
            return detail::Types<Ins...>{};
        }
    }
    template <std::size_t I>
    auto stage() {
        using Ins = decltype(inputs_from<I, 0>(detail::Types<>{}));
        const std::string name = "stage" + std::to_string(I);
        if constexpr (shape[I].cpu) {
            const StageOptions<Host> options{.lanes = lanes[I], .every = shape[I].every};
            if constexpr (shape[I].every > 1)
                return Stage{name, DagCpuTurnNode<Dag, I, Ins>{this}, options};
            else if constexpr (shape[I].in_place)
                return Stage{name, DagCpuInPlaceNode<Dag, I, Output<made_by(I)>, Ins>{this}, options};
            else if constexpr (shape[I].output)
                return Stage{name, DagCpuNode<Dag, I, Ins>{this}, options};
            else
                return Stage{name, DagCpuSink<Dag, I, Ins>{this}, options};
        } else {
            const StageOptions<B> options{.stream = streams[I],
                                          .graphed = graphed[I],
                                          .device = devices[I],
                                          .lanes = lanes[I],
                                          .every = shape[I].every,
                                          .multiprocessors = multiprocessors[I]};
            if constexpr (shape[I].every > 1)
                return Stage{name, DagTurnNode<Dag, I, Ins>{this}, options};
            else if constexpr (shape[I].in_place)
                return Stage{name, DagInPlaceNode<Dag, I, Output<made_by(I)>, Ins>{this}, options};
            else if constexpr (shape[I].output)
                return Stage{name, DagNode<Dag, I, Ins>{this}, options};
            else
                return Stage{name, DagSink<Dag, I, Ins>{this}, options};
        }
    }

    PinnedBuffer<Word, B> memory_, scratch_;
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
