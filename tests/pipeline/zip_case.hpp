// Two sources of different batches, and stages that take both.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "pipeline/chain.hpp"
#include "support/delayed_backend.hpp"

namespace pipeline_zip {

using namespace sluice;
using namespace sluice::test;

using B = Delayed<TestBackend>;
using Ref = BasicStreamRef<B>;
using Options = SourceOptions<B>;
inline constexpr std::size_t words = 16;

// Two kinds of batches in pinned memory.
template <int Kind>
struct Words {
    PinnedBuffer<Word, B> words{pipeline_zip::words};
};
using Left = Words<0>;
using Right = Words<1>;
using Both = Zipped<Left, Right>;

template <int Kind>
Words<Kind> make_words(int) {
    return {};
}
inline Word word_of(int kind, std::size_t index) { return input_word(index, static_cast<std::size_t>(kind)); }
template <int Kind>
void fill_words(std::size_t index, Words<Kind>& out) {
    for (Word& word : out.words)
        word = word_of(Kind, index);
}
template <int Kind>
auto words_source(Options options) {
    return Source{make_words<Kind>, fill_words<Kind>, options};
}

// Stages that take both batches, and one of them; all that comes out, a pair of words a batch of each.
struct Seen {
    using Cells = DeviceBuffer<Word, B>;
    struct Pair {
        Cells cells{2 * words};
    };
    struct Alone {
        Cells cells{words};
    };
    std::vector<std::pair<Word, Word>> both;
    std::vector<Word> alone;
    Readback<Word, B> pairs{2 * words, [this](std::size_t, std::span<const Word> seen) {
                                for (std::size_t i = 0; i < words; ++i)
                                    CHECK((seen[i] == seen[0] && seen[words + i] == seen[words]));
                                both.emplace_back(seen[0], seen[words]);
                            }};
    Readback<Word, B> rights{words, [this](std::size_t, std::span<const Word> seen) {
                                 CHECK(seen[0] == seen[words - 1]);
                                 alone.push_back(seen[0]);
                             }};

    auto pipeline(PipelineOptions options) {
        Stage join{"join", [](Ref on, const Both& in, Pair& out) {
                       ops::spin(on.get(), 100);
                       copy(on, out.cells.span().first(words), in.first.words);
                       copy(on, out.cells.span().subspan(words, words), in.second.words);
                   }};
        Stage right{"right", [](Ref on, const Right& in, Alone& out) { copy(on, out.cells, in.words); }};
        Stage show{"show", [this](Ref on, const Pair& pair, const Alone& in) {
                       pairs.push(on, pair.cells);
                       rights.push(on, in.cells);
                   }};
        return Pipeline{Stages{join, right, show},
                        Slots{[](int) { return Pair{}; }, [](int) { return Alone{}; }}, options};
    }
    void finish() {
        pairs.finish();
        rights.finish();
    }
};

inline constexpr std::array<PipelineOptions, 6> schedules{
    PipelineOptions{.schedule = Schedule::serial},
    PipelineOptions{.schedule = Schedule::overlapped},
    PipelineOptions{.schedule = Schedule::overlapped, .slots = 4},
    PipelineOptions{.schedule = Schedule::graphed},
    PipelineOptions{.schedule = Schedule::graphed, .graph_each_stage = true},
    PipelineOptions{.schedule = Schedule::graphed, .steps_per_graph = 4}};

} // namespace pipeline_zip
