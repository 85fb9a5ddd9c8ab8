// What the tests of Pipeline::run share: a source, pipelines under each schedule, and their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/capturable.hpp"
#include "pipeline/dag.hpp"
#include "support/delayed_backend.hpp"
#include "support/sanitized.hpp"

namespace pipeline_results {

using namespace sluice;
using namespace sluice::test;

using B = Delayed<TestBackend>;
inline constexpr std::size_t words = 16;
using TwoStages = Dag<B, DagStage{0, true}, DagStage{1}>;
using CpuLast = Dag<B, DagStage{0, true}, DagStage{1, false, true, true}>;
using Diamond = Dag<B, DagStage{0, true}, DagStage{1}, DagStage{1}, DagStage{6, true}>;

inline constexpr auto make_slot = [](int) { return PinnedBuffer<Word, B>(words); };
inline constexpr auto fill_slot = [](std::size_t index, PinnedBuffer<Word, B>& out) {
    for (std::size_t i = 0; i < words; ++i)
        out[i] = input_word(index, i);
};

inline SourceOptions<B> source_of(std::size_t batches, int slots = 4, int workers = 1) {
    return {.workers = workers, .slots = slots, .batches = batches};
}

template <class Check>
void for_each_way(Check&& check) {
    std::uint64_t seed = 0;
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        for (const int slots : {1, 2, 3}) {
            if (sanitized && slots == 2)
                continue;
            for (const int steps : {0, 1, 4}) {
                if (steps > 0 && schedule != Schedule::graphed)
                    continue;
                CAPTURE(std::string(to_string(schedule)));
                CAPTURE(slots);
                CAPTURE(steps);
                Delay::set({.seed = ++seed, .one_in = 4, .microseconds = 200});
                check.template operator()<TwoStages>(dag_options(schedule, slots, steps));
                check.template operator()<CpuLast>(dag_options(schedule, slots, steps));
                check.template operator()<Diamond>(dag_options(schedule, slots, steps));
            }
        }
    }
}

template <class Result>
void append(std::vector<Word>& all, const Result& result) {
    all.insert(all.end(), result.words.data(), result.words.data() + words);
}

} // namespace pipeline_results
