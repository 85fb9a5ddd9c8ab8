// A pipeline that adds several batches up to one result.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pipeline/chain.hpp"

namespace pipeline_rates {

using namespace sluice;
using namespace sluice::test;

using B = TestBackend;
using Ref = BasicStreamRef<B>;

struct Block {
    PinnedBuffer<Word, B> words{1};
};
// What has been added up, and of how many batches.
struct Sum {
    PinnedBuffer<Word, B> words{1};
    PinnedBuffer<Word, B> turn{1};
};
inline Word* zero() {
    static PinnedBuffer<Word, B> zero = [] {
        PinnedBuffer<Word, B> made(1);
        made[0] = 0;
        return made;
    }();
    return zero.data();
}
inline Block make_block(int) { return {}; }
inline Sum make_sum(int) { return {}; }

inline auto load_blocks() {
    return Stage{"load", [](Ref stream, const PinnedSpan<const Word, B>& batch, Block& out) {
                     copy(stream, out.words, batch);
                 }};
}
inline auto add_blocks(int every) {
    return Stage{"add",
                 [](Ref stream, const Block& block, Sum& out, Turn turn) {
                     if (turn.first())
                         copy(stream, out.words, block.words);
                     else
                         ops::add_words(stream.get(), out.words.data(), block.words.data(), 1);
                 },
                 StageOptions<B>{.every = every}};
}

// Passes blocks through, adds `every` of them up, and gives that as a result.
inline auto make_pipeline(int every, const PipelineOptions& options) {
    const Stage give{"give", [](Ref stream, const Sum& sum, Sum& out, const Turn& turn) {
                         copy(stream, out.words, sum.words);
                         // As a number of the launch, so that what is replayed must be of the same turn.
                         const Turn seen = turn;
                         ops::add_racing(stream.get(), out.turn.data(), zero(),
                                         static_cast<Word>(100 * seen.index + seen.count), 1);
                     }};
    return AnyPipeline<PinnedSpan<const Word, B>, B>(Stages{load_blocks(), add_blocks(every), give},
                                                     Slots{make_block, make_sum, make_sum}, options);
}

inline Word sum_of(std::size_t first, std::size_t count) {
    Word sum = 0;
    for (std::size_t batch = first; batch < first + count; ++batch)
        sum += input_word(batch, 0);
    return sum;
}

struct Batches {
    explicit Batches(std::size_t count) : inputs(count, 1) {
        for (std::size_t batch = 0; batch < count; ++batch)
            all.push_back(inputs[batch]);
    }
    Inputs<B> inputs;
    std::vector<PinnedSpan<const Word, B>> all;
};

template <class Check>
void for_each_way(Check&& check) {
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3}) {
            for (const int steps : {0, 8}) {
                for (const bool each : {false, true}) {
                    if ((each || steps > 0) && schedule != Schedule::graphed)
                        continue;
                    CAPTURE(std::string(to_string(schedule)));
                    CAPTURE(slots);
                    CAPTURE(steps);
                    CAPTURE(each);
                    PipelineOptions options{.schedule = schedule,
                                            .slots = slots,
                                            .steps_per_graph = steps,
                                            .graph_each_stage = each};
                    options.graphs.on_refusal = nullptr;
                    check(options);
                }
            }
        }
    }
}

} // namespace pipeline_rates
