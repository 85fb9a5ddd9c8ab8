// Schedule::graphed: what tells steps apart, and slots that change on the host from some batch on.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <sluice/pipeline/detail/core/step_graphs.hpp>
#include <sluice/pipeline/detail/core/step_lags.hpp>
#include <sluice/sluice.hpp>

#include "support/doctest.hpp"
#include "support/latch.hpp"

namespace pipeline_graphed_slots {

using namespace sluice;

namespace {

struct StageTable {
    std::array<detail::StagePlan, 4> stages{};
    bool holds[16] = {};
};

} // namespace

TEST_CASE("graphed: keys of steps differ in each of their numbers, and in how many they have") {
    for (std::size_t size = 0; size <= 40; ++size) {
        CAPTURE(size);
        detail::StepKey key, same;
        for (std::size_t i = 0; i < size; ++i) {
            key.push_back(i);
            same.push_back(i);
        }
        CHECK(key == same);
        for (std::size_t changed = 0; changed < size; ++changed) {
            detail::StepKey other;
            for (std::size_t i = 0; i < size; ++i)
                other.push_back(i == changed ? 1000 : i);
            CHECK_FALSE(key == other);
            CHECK_FALSE(other == key);
        }
        // What was there before it was cleared does not count.
        same.push_back(7);
        CHECK_FALSE(key == same);
        CHECK_FALSE(same == key);
        same.clear();
        for (std::size_t i = 0; i < size; ++i)
            same.push_back(i);
        CHECK(key == same);
    }
}

TEST_CASE("graphed: stages are as far behind as they are deep, unless a slot that they take would not last "
          "as long") {
    // Four in a chain; `taken` says whose slots another stage than the next one takes.
    const auto lags = [](std::size_t slots, const std::vector<std::pair<std::size_t, std::size_t>>& taken) {
        StageTable table;
        for (std::size_t i = 0; i < 4; ++i)
            table.stages[i].depth = i;
        for (std::size_t i = 1; i < 4; ++i)
            table.holds[i * 4 + i - 1] = true;
        for (const auto& [stage, of] : taken)
            table.holds[stage * 4 + of] = true;
        detail::PlanData plan;
        plan.stages = table.stages;
        plan.reads = plan.holds = table.holds;
        std::vector<std::size_t> all;
        for (const std::size_t lag : detail::step_lags(plan, slots))
            all.push_back(lag);
        return all;
    };
    using Lags = std::vector<std::size_t>;
    CHECK(lags(1, {}) == Lags{0, 0, 0, 0});
    CHECK(lags(2, {}) == Lags{0, 1, 2, 3});
    CHECK(lags(2, {{2, 0}}) == Lags{0, 1, 2, 3});
    CHECK(lags(2, {{3, 1}}) == Lags{0, 1, 2, 3});
    CHECK(lags(2, {{3, 0}}) == Lags{0, 1, 2, 2});
    CHECK(lags(3, {{3, 0}}) == Lags{0, 1, 2, 3});
}

TEST_CASE("graphed: lags of stages on one stream are lowered as little as their order and the slots allow") {
    std::mt19937 random(3);
    constexpr std::size_t most = 4;
    for (int round = 0; round < 400; ++round) {
        CAPTURE(round);
        StageTable table;
        const std::size_t stages = 1 + random() % most, slots = 1 + random() % 2;
        detail::List<std::size_t> lags(stages), first_on_stream(stages);
        std::vector<std::size_t> given;
        for (std::size_t i = 0; i < stages; ++i) {
            first_on_stream[i] = i;
            if (i > 0 && random() % 2 == 0)
                first_on_stream[i] = first_on_stream[random() % i];
            for (std::size_t j = 0; j < i; ++j)
                table.holds[i * stages + j] = random() % 3 == 0;
            given.push_back(i == 0 ? 0 : random() % most);
            lags[i] = given[i];
        }
        detail::PlanData plan;
        plan.stages = {table.stages.data(), stages};
        plan.reads = plan.holds = table.holds;
        const auto is_right = [&](const std::vector<std::size_t>& of) {
            for (std::size_t i = 0; i < stages; ++i) {
                for (std::size_t j = 0; j < i; ++j) {
                    const bool one_stream = first_on_stream[i] == first_on_stream[j];
                    if (!one_stream && !plan.takes_slot_of(i, j))
                        continue;
                    if (of[j] > of[i] || of[i] > of[j] + (one_stream ? 1 : slots))
                        return false;
                }
            }
            return true;
        };
        // Of all that are no larger than the given ones and right, the largest of each.
        std::vector<std::size_t> best(stages, 0), tried(stages, 0);
        for (std::size_t which = 0; which < 256; ++which) {
            bool no_larger = true;
            for (std::size_t i = 0, rest = which; i < stages; ++i, rest /= most) {
                tried[i] = rest % most;
                no_larger = no_larger && tried[i] <= given[i];
            }
            for (std::size_t i = 0; no_larger && is_right(tried) && i < stages; ++i)
                best[i] = std::max(best[i], tried[i]);
        }
        detail::lower_lags(plan, lags, slots, first_on_stream);
        for (std::size_t i = 0; i < stages; ++i)
            CHECK(lags[i] == best[i]);
    }
}

TEST_CASE("graphed: a stage that begins to change its slot when it is captured is not replayed") {
    struct Slot {
        int turn = 0;
    };
    for (const bool each_stage : {false, true}) {
        CAPTURE(each_stage);
        std::vector<int> seen;
        bool changes = false;
        // Turns its slot from 0 to 1 and back, on the host; each state comes again.
        Stage turn{"turn", [&](HostStreamRef stream, std::size_t, Slot& out) {
                       if (changes)
                           out.turn = 1 - out.turn;
                       stream.enqueue([&seen, value = out.turn] { seen.push_back(value); });
                   }};
        Stage use{"use", [](HostStreamRef stream, const Slot&) { stream.enqueue([] {}); }};
        TwoStreamPipeline pipeline{
            turn,
            use,
            [](int) { return Slot(); },
            {.schedule = Schedule::graphed, .slots = 1, .graph_each_stage = each_stage}};
        const std::size_t batch = 0;
        pipeline.submit(batch); // runs eagerly, without a change
        changes = true;
        for (int number = 1; number < 12; ++number)
            pipeline.submit(batch);
        pipeline.finish();
        REQUIRE(seen.size() == 12);
        CHECK(seen[0] == 0);
        // The attempt to capture it has turned the slot as well; from then on each batch has the other value.
        for (std::size_t number = 2; number < seen.size(); ++number)
            CHECK(seen[number] == 1 - seen[number - 1]);
        CHECK(pipeline.graph_counters().eager.changed_slots > 0);
    }
}

TEST_CASE("graphed: a graph takes half of a source's slots at most") {
    for (const int slots : {2, 8, 15, 16, 40}) {
        CAPTURE(slots);
        const std::size_t length = slots < 16 ? static_cast<std::size_t>(slots) / 2 : 8;
        Source source{[](int) { return 0; }, [](std::size_t, int&) {},
                      SourceOptions<Host>{.workers = 1, .slots = slots, .batches = 40}};
        std::size_t calls = 0, submitted = 0;
        Stage only{"only", [&](HostStreamRef stream, const int&) {
                       ++calls;
                       stream.enqueue([] {});
                   }};
        Pipeline pipeline{Stages{only}, Slots{}, {.schedule = Schedule::graphed, .steps_per_graph = 8}};
        while (calls == 0 && submitted < 40) {
            pipeline.submit(source.next());
            ++submitted;
        }
        CHECK(submitted == length);
        CHECK(calls == length);
        pipeline.finish();
    }
}

TEST_CASE("graphed: a batch is held for a longer graph exactly as long as the source has another one ready") {
    using test::eventually;
    test::ScopedLatch latch;
    Source source{[](int) { return 0; },
                  [handle = latch.handle()](std::size_t index, int& out) {
                      if (index == 2)
                          handle.pass();
                      out = static_cast<int>(index);
                  },
                  SourceOptions<Host>{.workers = 1, .slots = 8, .batches = 3}};
    std::size_t calls = 0;
    Stage only{"only", [&](HostStreamRef stream, const int&) {
                   ++calls;
                   stream.enqueue([] {});
               }};
    Pipeline pipeline{Stages{only}, Slots{}, {.schedule = Schedule::graphed}};
    {
        const auto first = source.next();
        REQUIRE(eventually([&] { return source.filled() == 1; }));
        pipeline.submit(first);
        CHECK(calls == 0); // the second one is ready
        const auto second = source.next();
        pipeline.submit(second);
        CHECK(calls == 2); // it is unknown when the third one will be
    }
    latch.open();
    pipeline.submit(source.next());
    pipeline.finish();
    CHECK(calls == 3);
}

} // namespace pipeline_graphed_slots
