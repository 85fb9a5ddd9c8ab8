// Poisoned slots: what relies on a slot's old contents, or reads a slot that was handed back, gives other bits, though the
// checker knows of no access and all schedules agree without stress. Right programs keep their bits.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sluice/backend/detail/checked/stress_state.hpp>
#include <sluice/sluice.hpp>

#include "pipeline/thrown.hpp"
#include "support/backend.hpp"
#include "support/doctest.hpp"
#include "support/error_text.hpp"
#include "support/stream_ops.hpp"

namespace sluice::test::pipeline_stress {
namespace {

using B = TestBackend;
using Ref = BasicStreamRef<B>;
constexpr std::size_t words = 8;

struct Batch {
    PinnedSpan<const Word, B> values;
    std::size_t rows = words;
    std::size_t index = 0;
};
struct First {
    DeviceBuffer<Word, B> words;
};
struct Second {
    DeviceBuffer<Word, B> words;
};

// A chain of three stages: the first copies the batch, the second adds 1, the third notes that. And what may go wrong.
struct Chain {
    enum class Mistake {
        none,
        writes_rows,     // the first stage writes the rows that there are, and the second reads all
        keeps_handed,    // the third reads the first's slot, by a pointer
        reads_last_lap,  // the first adds what the second's slot had in the last lap
        first_lap_table, // the second's slot has a table that its maker wrote: right, with `keeps_slot`
    };
    Mistake mistake = Mistake::none;
    std::size_t batches = 6;
    int slots = 8;
    bool keeps_slot = false;
    bool each_stage = false;

    std::vector<Word> operator()(Schedule schedule) {
        const BasicStream<B> stream;
        PinnedBuffer<Word, B> input(words * batches);
        for (std::size_t i = 0; i < input.size(); ++i)
            input[i] = static_cast<Word>(i + 1);
        DeviceBuffer<Word, B> noted(words * batches);
        fill_bytes(stream, noted, 0);
        std::vector<Word*> first(static_cast<std::size_t>(slots)), second(first.size());
        const auto made = [&](std::vector<Word*>& at, int number) {
            DeviceBuffer<Word, B> memory(words);
            fill(stream, memory, Word{7});
            stream.sync();
            at[static_cast<std::size_t>(number)] = memory.data();
            return memory;
        };
        const auto slot_of = [&](const Batch& batch) {
            return batch.index % static_cast<std::size_t>(slots);
        };
        {
            Pipeline pipeline{Stages{Stage{"copy",
                                           [&](Ref on, const Batch& batch, First& out) {
                                               const std::size_t rows =
                                                   mistake == Mistake::writes_rows ? batch.rows : words;
                                               copy(on, out.words.span().first(rows),
                                                    batch.values.first(rows));
                                               if (mistake == Mistake::reads_last_lap) {
                                                   ops::add_racing(on.get(), out.words.data(),
                                                                   second[slot_of(batch)], 0, words);
                                               }
                                           }},
                                     Stage{"add",
                                           [&](Ref on, const First& in, Second& out) {
                                               const std::size_t count =
                                                   mistake == Mistake::first_lap_table ? words - 1 : words;
                                               ops::add_racing(on.get(), out.words.data(),
                                                               const_cast<Word*>(in.words.data()), 1, count);
                                           },
                                           StageOptions<B>{.keeps_slot = keeps_slot}},
                                     Stage{"note",
                                           [&](Ref on, const Batch& batch, const Second& in) {
                                               Word* const from = mistake == Mistake::keeps_handed
                                                                      ? first[slot_of(batch)]
                                                                      : const_cast<Word*>(in.words.data());
                                               ops::add_racing(on.get(), noted.data() + words * batch.index,
                                                               from, 0, words);
                                           }}},
                              Slots{[&](int slot) { return First{made(first, slot)}; },
                                    [&](int slot) { return Second{made(second, slot)}; }},
                              {.schedule = schedule, .slots = slots, .graph_each_stage = each_stage}};
            for (std::size_t i = 0; i < batches; ++i) {
                const std::size_t rows = i + 1 == batches ? words / 2 : words;
                pipeline.submit(Batch{PinnedSpan<const Word, B>(input.data() + words * i, words), rows, i})
                    .stays();
            }
            pipeline.finish();
        }
        std::vector<Word> result(noted.size());
        copy_and_wait(stream, result, noted);
        return result;
    }
};

const StressRuns runs{.stress = {.seed = 3, .delay_us = 50}, .seeds = 1, .results_per_batch = words};

// Nothing shows without stress, and poison under it, first in batch `batch`; under any one schedule.
void check_is_shown(Chain chain, std::size_t batch) {
    CHECK(verify_schedules(chain));
    for (const Schedule schedule : {Schedule::serial, Schedule::overlapped, Schedule::graphed}) {
        CAPTURE(std::string(to_string(schedule)));
        const auto run = [&](Schedule) { return chain(schedule); };
        const ScheduleVerdict verdict = verify_schedules(run, runs, {schedule});
        CHECK_FALSE(verdict);
        CHECK(verdict.seed == 3);
        CHECK(contains_all(verdict.difference,
                           {to_string(schedule), " under stress with seed 3 differs from ",
                            ", of batch " + std::to_string(batch) + ", is the first that has other bits"}));
    }
}

} // namespace

TEST_CASE("SLUICE_STRESS is a seed, and what follows it, or refused in a sentence") {
    using detail::checked::stress_of;
    const Stress stress = stress_of("7,50,100");
    CHECK(stress.seed == 7);
    CHECK(stress.one_in == 50);
    CHECK(stress.delay_us == 100);
    CHECK(stress_of("18446744073709551615").seed == ~std::uint64_t{0});
    CHECK(stress_of("0,1000000").one_in == 1000000);
    CHECK(stress_of("0,1,0").delay_us == 0);
    for (const char* const wrong : {"abc", "-1", " 7", "7 ", "7,", "7,0", "7,-1", "7,2,", "7,2,-5",
                                    "7,2,1000001", "7,2,3,4", "7,x,3", "18446744073709551616"}) {
        CHECK(text_of([&] { (void)stress_of(wrong); }) ==
              "SLUICE_STRESS is \"" + std::string(wrong) +
                  "\"; expected SEED, SEED,ONE_IN or SEED,ONE_IN,DELAY_US in whole numbers, ONE_IN from 1 "
                  "and DELAY_US "
                  "from 0 to 1000000");
    }
}

TEST_CASE("Contract 11: stress: a short batch of which the next stage reads more rows than were written") {
    Chain chain{.mistake = Chain::Mistake::writes_rows, .slots = 2};
    check_is_shown(chain, 5);
    const ScheduleVerdict verdict = verify_schedules(chain, runs);
    // The poison is added to.
    CHECK(contains(verdict.difference,
                   "schedule serial under stress with seed 3 differs from serial: result 44 of 48"));
}

TEST_CASE("Contract 11: stress: a slot that is read after its last reader has handed it back") {
    Chain chain{.mistake = Chain::Mistake::keeps_handed};
    check_is_shown(chain, 0);
    CHECK(contains(verify_schedules(chain, runs).difference,
                   ": those of a poisoned slot, which was read before it was written or after it was handed "
                   "back"));
}

TEST_CASE("Contract 11: stress: a later stage's slot that is read before that stage has written it") {
    check_is_shown({.mistake = Chain::Mistake::reads_last_lap, .batches = 2}, 0);
}

TEST_CASE("Contract 11: stress: a slot that keeps a table is poisoned unless its stage says so") {
    Chain chain{.mistake = Chain::Mistake::first_lap_table, .slots = 2};
    check_is_shown(chain, 0);
    chain.keeps_slot = true;
    CHECK(verify_schedules(chain, runs).difference == "");
}

TEST_CASE("Contract 11: stress: right stages keep their bits, with short batches, under each schedule") {
    for (const int slots : {1, 2, 3}) {
        Chain chain{.batches = 13, .slots = slots};
        CHECK(verify_schedules(chain, {.stress = {.delay_us = 50}, .seeds = 2}).difference == "");
        chain.each_stage = true;
        CHECK(verify_schedules(chain, runs, {Schedule::serial, Schedule::graphed}).difference == "");
    }
}

TEST_CASE("Contract 11: stress: stages on one external stream are never enqueued in another order") {
    const auto run = [](Schedule schedule) {
        const BasicStream<B> stream;
        PinnedBuffer<Word, B> input(words), seen(words), out(words);
        for (std::size_t i = 0; i < words; ++i) {
            input[i] = static_cast<Word>(i + 1);
            seen[i] = 0;
        }
        const auto note = [&](Ref on, const Batch& batch) {
            ops::step(on.get(), out.data(), batch.values.data(), seen.data(), words);
        };
        const auto add = [&](Ref on, const Batch&) {
            ops::add_racing(on.get(), seen.data(), seen.data(), 5, words);
        };
        const StageOptions<B> options{.stream = stream};
        Pipeline pipeline{Stages{Stage{"note", note, options}, Stage{"add", add, options},
                                 Stage{"note again", note, options}},
                          PipelineOptions{.schedule = schedule, .graph_each_stage = true}};
        const Batch batch{std::as_const(input).span()};
        for (std::size_t i = 0; i < 8; ++i)
            pipeline.submit(batch).stays();
        pipeline.finish();
        return std::vector<Word>(seen.begin(), seen.end());
    };
    CHECK(verify_schedules(run, {.stress = {.delay_us = 50}, .seeds = 4}).difference == "");
}

TEST_CASE("Contract 11: stress: it ends with its scope, and an outer one counts again") {
    const auto operations = [] {
        const std::uint64_t before = StressScope::counts().operations;
        (void)Chain{.batches = 1}(Schedule::serial);
        return StressScope::counts().operations - before;
    };
    CHECK(operations() == 0);
    {
        const StressScope outer({.poison = false});
        CHECK(operations() > 0);
        const std::uint64_t poisonings = StressScope::counts().poisonings;
        {
            const StressScope inner({.poison = true});
            CHECK(operations() > 0);
            CHECK(StressScope::counts().poisonings > poisonings);
        }
        const std::uint64_t after = StressScope::counts().poisonings;
        CHECK(operations() > 0);
        CHECK(StressScope::counts().poisonings == after);
    }
    CHECK(operations() == 0);
}

TEST_CASE("Contract 11: stress: what is refused") {
    CHECK(contains(text_of([] { StressScope scope({.delay_us = -1}); }),
                   "Stress::delay_us must be 0 or more, got -1"));
    CHECK(contains(text_of([] { StressScope scope({.one_in = 0}); }),
                   "Stress::one_in must be 1 or more, got 0"));
    CHECK(contains(text_of([] { verify_schedules(Chain{}, StressRuns{.seeds = 0}); }),
                   "StressRuns::seeds must be 1 or more, got 0"));
    const auto no_work = [](Schedule) { return std::vector<int>(3); };
    CHECK(contains(text_of([&] { verify_schedules(no_work, runs); }),
                   "handed no work to a stream of a checked backend"));
    const auto no_results = [](Schedule schedule) {
        (void)Chain{}(schedule);
        return std::vector<int>{};
    };
    CHECK(contains(text_of([&] { verify_schedules(no_results, runs); }),
                   "there are no results, expected at least one to be compared"));
    int calls = 0;
    const auto throws = [&](Schedule) -> std::vector<int> {
        if (++calls == 3)
            throw std::runtime_error("out of batches");
        return {};
    };
    CHECK(contains(text_of([&] { verify_schedules(throws, runs); }),
                   "verify_schedules: schedule overlapped under stress with seed 3: out of batches"));
    calls = 0;
    const auto throws_a_number = [&](Schedule) -> std::vector<int> {
        if (++calls == 2)
            throw 5;
        return {};
    };
    CHECK(contains(
        text_of([&] { verify_schedules(throws_a_number, runs); }),
        "verify_schedules: schedule serial under stress with seed 3: an exception of an unknown type"));
}

TEST_CASE("Contract 11: stress: batches of a source are poisoned before they are filled again, unless it "
          "keeps them") {
    const auto read = [](bool keeps) {
        return [keeps](Schedule) {
            struct Both {
                PinnedBuffer<float, B> pinned{2};
                DeviceBuffer<float, B> device{2};
            };
            BasicStream<B> stream;
            Source source{[&](int) {
                              Both both;
                              fill(stream, both.device, 3.0f);
                              stream.sync();
                              both.pinned[0] = both.pinned[1] = 2;
                              return both;
                          },
                          [](std::size_t index, Both& out) { out.pinned[0] = static_cast<float>(index); },
                          SourceOptions<B>{.workers = 0, .slots = 1, .batches = 3, .keeps_slots = keeps}};
            std::vector<float> seen;
            for (const auto& batch : source) {
                PinnedBuffer<float, B> device(2);
                copy(stream, device, batch->device);
                stream.sync();
                seen.insert(seen.end(), {batch->pinned[0], batch->pinned[1], device[0]});
            }
            return seen;
        };
    };
    CHECK(verify_schedules(read(true), {.seeds = 1}, {Schedule::serial}).difference == "");
    // The first fill finds what the maker wrote.
    CHECK(contains(
        verify_schedules(read(false), {.seeds = 1, .results_per_batch = 3}, {Schedule::serial}).difference,
        "result 4 of 9, of batch 1, is the first that has other bits: those of a poisoned slot"));
    const StressScope scope({.delay_us = 0});
    CHECK(read(false)(Schedule::serial)[5] != 3.0f);
}

} // namespace sluice::test::pipeline_stress
