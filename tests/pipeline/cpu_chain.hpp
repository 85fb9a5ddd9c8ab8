// A chain of three stages, any of which may be CPU stages.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "pipeline/chain.hpp"

namespace sluice::test {

/// The stages pass words on as those of `Chain` do; the last one keeps a history. Bit i of `cpu` says whether stage i is a
/// CPU stage. Must outlive its pipelines.
template <Backend B>
class CpuChain {
public:
    using Ref = BasicStreamRef<B>;
    using Cells = PinnedBuffer<Word, B>;
    static constexpr const char* names[] = {"first", "second", "third"};

    CpuChain(std::size_t count, std::size_t batches)
        : words(count), memory_(3 * count), history_(batches * count) {
        clear();
    }

    /// Called in each CPU stage, on its thread, before its work.
    std::function<void(std::size_t stage, std::size_t batch)> before;

    void clear() {
        for (auto* all : {&memory_, &history_}) {
            for (std::size_t i = 0; i < all->size(); ++i)
                (*all)[i] = 0;
        }
        batch_ = {};
    }

    template <unsigned cpu>
    auto pipeline(const PipelineOptions& options) {
        return Pipeline{Stages{stage<0, cpu, PinnedSpan<const Word, B>>(), stage<1, cpu, const Slot<0>&>(),
                               stage<2, cpu, const Slot<1>&>()},
                        Slots{[this](int) { return Slot<0>{Cells(words)}; },
                              [this](int) { return Slot<1>{Cells(words)}; }},
                        options};
    }

    /// The first `batches` batches as the last stage had them, then what each stage remembers. The pipeline must have
    /// been finished.
    std::vector<Word> results(std::size_t batches) const {
        std::vector<Word> all(history_.data(), history_.data() + batches * words);
        all.insert(all.end(), memory_.data(), memory_.data() + memory_.size());
        return all;
    }

    const std::size_t words;

private:
    template <std::size_t I>
    struct Slot {
        Cells cells;
        const Word* data() const { return cells.data(); }
        Word* data() { return cells.data(); }
    };

    template <std::size_t I, unsigned cpu, class In>
    auto stage() {
        if constexpr ((cpu >> I & 1) != 0 && I < 2)
            return Stage{names[I], [this](In in, Slot<I>& out) { on_cpu(I, out.data(), in.data()); }};
        else if constexpr ((cpu >> I & 1) != 0)
            return Stage{names[I], [this](In in) { on_cpu(I, next_of_history(I), in.data()); }};
        else if constexpr (I < 2)
            return Stage{names[I], [this](Ref stream, In in, Slot<I>& out) {
                             ops::step(stream.get(), out.data(), in.data(), memory(I), words);
                         }};
        else // it counts its batches on the host
            return Stage{names[I],
                         [this](Ref stream, In in) {
                             ops::step(stream.get(), next_of_history(I), in.data(), memory(I), words);
                             ++batch_[I];
                         },
                         StageOptions<B>{.graphed = false}};
    }
    void on_cpu(std::size_t stage, Word* out, const Word* in) {
        const std::size_t batch = batch_[stage]++;
        if (before)
            before(stage, batch);
        Word* const kept = memory(stage);
        for (std::size_t i = 0; i < words; ++i) {
            const Word word = in[i];
            out[i] = next_word(kept[i], word);
            kept[i] = next_memory(kept[i], word);
        }
    }
    Word* next_of_history(std::size_t stage) { return history_.data() + batch_[stage] * words; }
    Word* memory(std::size_t stage) { return memory_.data() + stage * words; }

    PinnedBuffer<Word, B> memory_, history_;
    std::array<std::size_t, 3> batch_{};
};

} // namespace sluice::test
