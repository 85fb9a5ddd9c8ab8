// A chain of stages whose results show any batch that is lost, doubled, late or torn, with the results that
// a plain loop gives for it.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/library_core.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test {

/// Word `index` of input batch `batch`.
constexpr Word input_word(std::size_t batch, std::size_t index) {
    return next_word(static_cast<Word>(batch) * 7919u + 17u, static_cast<Word>(index));
}

/// Input batches 0 … count-1, each of `words` words, ready in pinned memory.
template <Backend B>
class Inputs {
public:
    Inputs(std::size_t count, std::size_t words) : words_(words), all_(count * words) {
        for (std::size_t i = 0; i < all_.size(); ++i)
            all_[i] = input_word(i / words, i % words);
    }
    PinnedSpan<const Word, B> operator[](std::size_t batch) const {
        return all_.span().subspan(batch * words_, words_);
    }

private:
    std::size_t words_;
    PinnedBuffer<Word, B> all_;
};

/// What `Chain::results` must be for input batches `batches`, in this order, through `stages` stages that
/// remember `initial` in each word at first. `input(batch, index)` gives the batches' words.
template <class Input>
std::vector<Word> chain_results(int stages, std::size_t words, const std::vector<std::size_t>& batches,
                                Word initial, Input&& input) {
    std::vector<Word> results;
    std::vector<Word> memory(static_cast<std::size_t>(stages) * words, initial);
    for (const std::size_t batch : batches) {
        for (std::size_t i = 0; i < words; ++i) {
            Word word = input(batch, i);
            for (std::size_t cell = i; cell < memory.size(); cell += words) {
                const Word in = word;
                word = next_word(memory[cell], in);
                memory[cell] = next_memory(memory[cell], in);
            }
            results.push_back(word);
        }
    }
    results.insert(results.end(), memory.begin(), memory.end());
    return results;
}

/// The same for batches of `input_word`.
inline std::vector<Word> chain_results(int stages, std::size_t words, const std::vector<std::size_t>& batches,
                                       Word initial = 0) {
    return chain_results(stages, words, batches, initial, input_word);
}

/// The numbers first … first+count-1.
inline std::vector<std::size_t> batches_from(std::size_t first, std::size_t count) {
    std::vector<std::size_t> batches(count);
    for (std::size_t i = 0; i < count; ++i)
        batches[i] = first + i;
    return batches;
}

/// Up to four stages. The first copies its batch to the device; each passes its words through `ops::step`
/// with a memory of its own; the last puts them into a history. Must outlive its pipelines.
template <Backend B>
class Chain {
public:
    using Ref = BasicStreamRef<B>;
    using Cells = DeviceBuffer<Word, B>;
    using Hook = std::function<void(std::size_t stage, Ref stream, std::size_t batch)>;

    static constexpr const char* names[] = {"first", "second", "third", "fourth"};

    /// For at most `batches` batches of `words` words.
    Chain(int stages, std::size_t words, std::size_t batches)
        : words_(words), memory_(static_cast<std::size_t>(stages) * words), history_(batches * words),
          batch_(static_cast<std::size_t>(stages)) {
        clear();
    }

    /// Called in each stage before, and after, its work is enqueued.
    Hook before, after;

    /// Forgets all batches. No pipeline of this chain may have work in flight.
    void clear() {
        fill_bytes(stream_, memory_, 0);
        fill_bytes(stream_, history_, 0);
        stream_.sync();
        batch_.assign(batch_.size(), 0);
    }

    /// Under Schedule::graphed the last stage, which counts its batches, is not captured, and each other one is a graph.
    template <int S>
    auto pipeline(PipelineOptions options = {}, std::array<StageOptions<B>, std::size_t{S}> external = {}) {
        constexpr std::size_t count = S;
        if (options.schedule == Schedule::graphed)
            external[count - 1].graphed = false;
        if constexpr (count == 1) {
            return Pipeline{Stages{Stage{"first", Only{this}, external[0]}}, Slots{}, options};
        } else {
            return [&]<std::size_t... Middles, std::size_t... Rings>(std::index_sequence<Middles...>,
                                                                     std::index_sequence<Rings...>) {
                return Pipeline{
                    Stages{Stage{names[0], First{this}, external[0]},
                           Stage{names[Middles + 1], Middle{this, Middles + 1}, external[Middles + 1]}...,
                           Stage{names[count - 1], Last{this, count - 1}, external[count - 1]}},
                    Slots{MakeCells<Rings>{words_}...}, options};
            }
            (std::make_index_sequence<count - 2>{}, std::make_index_sequence<count - 1>{});
        }
    }

    /// The memory of all stages.
    DeviceSpan<Word, B> memory() { return memory_; }
    /// The memory of a stage.
    DeviceSpan<Word, B> memory(std::size_t stage) { return memory_.span().subspan(stage * words_, words_); }

    /// Batches that a stage has been called for.
    std::size_t calls(std::size_t stage) const { return batch_[stage]; }

    /// The first `batches` batches as the last stage had them, then what each stage remembers. The pipeline
    /// must have been finished.
    std::vector<Word> results(std::size_t batches) { return results(batches, stream_); }

    /// The same, as work of `stream` sees it.
    std::vector<Word> results(std::size_t batches, Ref stream) {
        std::vector<Word> history(batches * words_);
        std::vector<Word> memory(memory_.size());
        copy_and_wait(stream, history, history_.span().first(history.size()));
        copy_and_wait(stream, memory, memory_);
        history.insert(history.end(), memory.begin(), memory.end());
        return history;
    }

private:
    template <std::size_t Ring>
    struct MakeCells {
        std::size_t words;
        Cells operator()(int) const { return Cells(words); }
    };
    struct Only {
        Chain* chain;
        void operator()(Ref stream, PinnedSpan<const Word, B> in) const {
            chain->run(0, stream, [&](std::size_t batch) {
                const auto to = chain->history(batch);
                copy(stream, to, in);
                return std::pair(to.data(), to.data());
            });
        }
    };
    struct First {
        Chain* chain;
        void operator()(Ref stream, PinnedSpan<const Word, B> in, Cells& out) const {
            chain->run(0, stream, [&](std::size_t) {
                copy(stream, out, in);
                return std::pair(out.data(), out.data());
            });
        }
    };
    struct Middle {
        Chain* chain;
        std::size_t stage;
        void operator()(Ref stream, Cells& in, Cells& out) const {
            chain->run(stage, stream, [&](std::size_t) { return std::pair(out.data(), in.data()); });
        }
    };
    struct Last {
        Chain* chain;
        std::size_t stage;
        void operator()(Ref stream, Cells& in) const {
            chain->run(stage, stream,
                       [&](std::size_t batch) { return std::pair(chain->history(batch).data(), in.data()); });
        }
    };

    DeviceSpan<Word, B> history(std::size_t batch) { return history_.span().subspan(batch * words_, words_); }

    template <class OutAndIn>
    void run(std::size_t stage, Ref stream, OutAndIn&& out_and_in) {
        const std::size_t batch = batch_[stage]++;
        if (before)
            before(stage, stream, batch);
        const auto [out, in] = out_and_in(batch);
        ops::step(stream.get(), out, in, memory(stage).data(), words_);
        if (after)
            after(stage, stream, batch);
    }

    std::size_t words_;
    DeviceBuffer<Word, B> memory_;
    DeviceBuffer<Word, B> history_;
    std::vector<std::size_t> batch_;
    BasicStream<B> stream_;
};

} // namespace sluice::test
