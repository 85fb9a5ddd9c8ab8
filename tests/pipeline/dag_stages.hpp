// What shapes of `Dag` have in common: their stages, and what they must give by a plain loop. Nothing here is made for each shape
// anew, of which the tests have many.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
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

using DagShape = std::span<const DagStage>;

/// Batches for which a stage runs once.
constexpr std::size_t batches_a_run(DagShape shape, std::size_t stage) {
    std::size_t runs = 1;
    for (std::size_t from = 0; from < stage; ++from) {
        if ((shape[stage].reads >> from & 1) != 0)
            runs = std::lcm(runs, batches_a_run(shape, from) * static_cast<std::size_t>(shape[from].every));
    }
    return runs;
}
/// The stage whose output a stage changes in place; of no other stage: none.
constexpr std::size_t changed_by(DagShape shape, std::size_t stage) {
    std::size_t changed = shape.size();
    for (std::size_t from = 0; shape[stage].in_place && from < stage; ++from)
        changed = (shape[stage].reads >> from & 1) != 0 ? from : changed;
    return changed;
}
/// The stage that has made what a stage hands on.
constexpr std::size_t made_by(DagShape shape, std::size_t stage) {
    while (shape[stage].in_place)
        stage = changed_by(shape, stage);
    return stage;
}

/// What stage I makes: words, and the memory of a stage that keeps none from batch to batch.
template <Backend B, std::size_t I>
struct DagOutput {
    explicit DagOutput(std::size_t count) : words(count), more(count), memory(count), memory_on_cpu(count) {}
    PinnedBuffer<Word, B> words;
    PinnedBuffer<Word, B> more; // what is of no further use
    DeviceBuffer<Word, B> memory;
    std::vector<Word> memory_on_cpu;
};
template <Backend B, std::size_t I>
struct DagMaker {
    std::size_t words;
    DagOutput<B, I> operator()(int) const { return DagOutput<B, I>(words); }
};

/// What the stages of a `Dag` work on.
template <Backend B>
class DagOf {
public:
    using backend = B;
    using Ref = BasicStreamRef<B>;
    static constexpr std::size_t most_stages = 6;

    /// How stages run: lanes, multiprocessors, the device, an external stream, and whether they opt out of graphs.
    std::array<int, most_stages> lanes;
    std::array<int, most_stages> multiprocessors;
    std::array<int, most_stages> devices;
    std::array<std::optional<Ref>, most_stages> streams;
    std::array<bool, most_stages> graphed;
    /// The stage in whose memory each remembers what it has seen: its own, unless a test says otherwise.
    std::array<std::size_t, most_stages> memory_of;

    DagOf(DagShape shape, std::size_t count)
        : words(count), shape_(shape), memory_(shape.size() * count), scratch_(shape.size() * count) {
        lanes.fill(1);
        multiprocessors.fill(0);
        devices.fill(-1);
        graphed.fill(true);
        for (std::size_t stage = 0; stage < most_stages; ++stage)
            memory_of[stage] = stage;
        clear();
    }
    void clear() {
        for (auto* all : {&memory_, &scratch_}) {
            for (std::size_t i = 0; i < all->size(); ++i)
                (*all)[i] = 0;
        }
    }

    /// What each stage remembers. The pipeline must have been finished.
    std::vector<Word> memories() const { return {memory_.data(), memory_.data() + memory_.size()}; }

    /// The same after `batches`, from a plain loop. With `results`, the last stage's outputs are appended there. `ends` tells
    /// whether the pipeline was finished behind so many, as it is behind all.
    std::vector<Word> expected(const std::vector<std::size_t>& batches, std::vector<Word>* results = nullptr,
                               const std::vector<std::size_t>& ends = {}) const {
        std::vector<Word> memory(shape_.size() * words, 0);
        std::vector<std::vector<Word>> all(batches.size(), std::vector<Word>(shape_.size() * words, 0));
        std::size_t begin = 0; // of what is made of several batches
        for (std::size_t number = 0; number < batches.size(); ++number) {
            bool ends_here = number + 1 == batches.size();
            for (const std::size_t end : ends)
                ends_here = ends_here || end == number + 1;
            std::vector<Word>& outs = all[number];
            if (number > 0)
                outs = all[number - 1];
            bool last_ran = false;
            for (std::size_t stage = 0; stage < shape_.size(); ++stage) {
                const std::size_t runs = batches_a_run(shape_, stage), place = number - begin;
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
        if (run % static_cast<std::size_t>(shape_[stage].every) != 0)
            take(outs[stage * words + i]);
        const std::size_t window =
            shape_[stage].window > 1 ? static_cast<std::size_t>(shape_[stage].window) : 1;
        for (std::size_t from = 0; from < stage; ++from) {
            if ((shape_[stage].reads >> from & 1) == 0 || changed_by(shape_, stage) == from)
                continue;
            for (std::size_t back = 0; back < window && back <= number; ++back)
                take(all[number - back][from * words + i]);
        }
        if (shape_[stage].batch)
            take(input_word(batch, i));
        if (shape_[stage].in_place)
            take(outs[changed_by(shape_, stage) * words + i]);
        else if (shape_[stage].output)
            take(out);
        outs[stage * words + i] = out;
    }
    bool keeps(std::size_t stage) const { return lanes[stage] == 1; }

    DagShape shape_;
    PinnedBuffer<Word, B> memory_, scratch_;
};

/// A stage of a `Dag`, which takes `Ins`. It does not know the shape, so that those of several shapes are one to the compiler.
template <Backend B, std::size_t I, class Ins>
struct DagNode;
template <Backend B, std::size_t I, class... Ins>
struct DagNode<B, I, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(BasicStreamRef<B> stream, Ins... ins, DagOutput<B, I>& out) const {
        Word* const memory = dag->begin(stream, I, out.memory);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            ops::step(stream.get(), out.words.data(), in, memory, dag->words);
        };
        (DagOf<B>::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
/// One whose output is made of several batches.
template <Backend B, std::size_t I, class Ins>
struct DagTurnNode;
template <Backend B, std::size_t I, class... Ins>
struct DagTurnNode<B, I, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(BasicStreamRef<B> stream, Turn turn, Ins... ins, DagOutput<B, I>& out) const {
        const auto take = [&](const Word* in) {
            ops::step(stream.get(), out.words.data(), in, dag->memory(I), dag->words);
        };
        if (!turn.first())
            take(out.words.data());
        (DagOf<B>::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
template <Backend B, std::size_t I, class Ins>
struct DagCpuTurnNode;
template <Backend B, std::size_t I, class... Ins>
struct DagCpuTurnNode<B, I, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(Ins... ins, DagOutput<B, I>& out, const Turn& turn) const {
        const auto take = [&](const Word* in) {
            DagOf<B>::step_on_cpu(out.words.data(), in, dag->memory(I), dag->words);
        };
        if (!turn.first())
            take(out.words.data());
        (DagOf<B>::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
/// One that changes the output of an earlier stage, behind what else it takes.
template <Backend B, std::size_t I, class Changed, class Ins>
struct DagInPlaceNode;
template <Backend B, std::size_t I, class Changed, class... Ins>
struct DagInPlaceNode<B, I, Changed, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(BasicStreamRef<B> stream, Ins... ins, InPlace<Changed>& out) const {
        Word* const memory = dag->begin(stream, I, out->memory);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            ops::step(stream.get(), out->more.data(), in, memory, dag->words);
        };
        (DagOf<B>::for_each_words(ins, take), ...);
        ops::step(stream.get(), out->words.data(), out->words.data(), memory, dag->words);
    }
};
template <Backend B, std::size_t I, class Changed, class Ins>
struct DagCpuInPlaceNode;
template <Backend B, std::size_t I, class Changed, class... Ins>
struct DagCpuInPlaceNode<B, I, Changed, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(Ins... ins, InPlace<Changed>& out) const {
        Word* const memory = dag->begin_on_cpu(I, out->memory_on_cpu);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            DagOf<B>::step_on_cpu(out->more.data(), in, memory, dag->words);
        };
        (DagOf<B>::for_each_words(ins, take), ...);
        DagOf<B>::step_on_cpu(out->words.data(), out->words.data(), memory, dag->words);
    }
};
/// One that makes nothing.
template <Backend B, std::size_t I, class Ins>
struct DagSink;
template <Backend B, std::size_t I, class... Ins>
struct DagSink<B, I, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(BasicStreamRef<B> stream, Ins... ins) const {
        [[maybe_unused]] const auto take = [&](const Word* in) {
            ops::step(stream.get(), dag->scratch(I), in, dag->memory(I), dag->words);
        };
        (DagOf<B>::for_each_words(ins, take), ...);
    }
};
/// CPU stages.
template <Backend B, std::size_t I, class Ins>
struct DagCpuNode;
template <Backend B, std::size_t I, class... Ins>
struct DagCpuNode<B, I, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(Ins... ins, DagOutput<B, I>& out) const {
        Word* const memory = dag->begin_on_cpu(I, out.memory_on_cpu);
        [[maybe_unused]] const auto take = [&](const Word* in) {
            DagOf<B>::step_on_cpu(out.words.data(), in, memory, dag->words);
        };
        (DagOf<B>::for_each_words(ins, take), ...);
        take(out.words.data());
    }
};
template <Backend B, std::size_t I, class Ins>
struct DagCpuSink;
template <Backend B, std::size_t I, class... Ins>
struct DagCpuSink<B, I, detail::Types<Ins...>> {
    DagOf<B>* dag;
    void operator()(Ins... ins) const {
        [[maybe_unused]] const auto take = [&](const Word* in) {
            DagOf<B>::step_on_cpu(dag->scratch(I), in, dag->memory(I), dag->words);
        };
        (DagOf<B>::for_each_words(ins, take), ...);
    }
};

/// A stage that is called `node`, as `dag` has it run.
template <class Node, bool cpu, Backend B>
auto dag_stage(DagOf<B>& dag, std::size_t i, const DagStage& of) {
    const std::string name = "stage" + std::to_string(i);
    if constexpr (cpu) {
        return Stage{name, Node{&dag}, StageOptions<Host>{.lanes = dag.lanes[i], .every = of.every}};
    } else {
        return Stage{name, Node{&dag},
                     StageOptions<B>{.stream = dag.streams[i],
                                     .graphed = dag.graphed[i],
                                     .device = dag.devices[i],
                                     .lanes = dag.lanes[i],
                                     .every = of.every,
                                     .multiprocessors = dag.multiprocessors[i]}};
    }
}

} // namespace sluice::test
