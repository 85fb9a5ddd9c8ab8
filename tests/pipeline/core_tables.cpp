// What the core looks up by a batch's number, against models that go from batch to batch.
#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sluice/pipeline/detail/core/slot_table.hpp>
#include <sluice/pipeline/detail/core/stage_rates.hpp>
#include <sluice/sluice.hpp>

#include "pipeline/core_tables_model.hpp"
#include "support/doctest.hpp"

namespace pipeline_core_tables {

namespace {

// The slots: numbers on the heap, so that the sanitizers see one that is destroyed twice or never.
struct Made {
    std::vector<std::pair<int, int>> destroyed;
};
struct OfMaker {
    Made* made;
    int maker;
};
struct Slot {
    Made* made;
    int maker, number;
    PinnedBuffer<std::byte, Host> pinned;
    DeviceBuffer<std::byte, Host> device;
};
const detail::SlotOps slot_ops{.bytes = sizeof(Slot),
                               .empty = false,
                               .told_by_bytes = false,
                               .has_host_part = false,
                               .append_key = nullptr,
                               .make = [](void* maker, int number) -> void* {
                                   const OfMaker& of = *static_cast<OfMaker*>(maker);
                                   const auto bytes = static_cast<std::size_t>(of.maker + 1);
                                   return new Slot{of.made, of.maker, number,
                                                   PinnedBuffer<std::byte, Host>(100 * bytes),
                                                   DeviceBuffer<std::byte, Host>(10 * bytes)};
                               },
                               .destroy =
                                   [](void* slot) noexcept {
                                       Slot* const one = static_cast<Slot*>(slot);
                                       one->made->destroyed.push_back({one->maker, one->number});
                                       delete one;
                                   },
                               .show_memory = nullptr};

// The tables of drawn stages, and the model of the same.
struct Tables {
    const Shape shape;
    const detail::PlanData& plan = shape.plan;
    const std::size_t stages = plan.stages.size();
    detail::StageRates rates{plan, shape.setups.data()};
    std::vector<Counted> model = counted(shape);
    const std::size_t count; // of slots
    detail::SlotTable table{plan.makers, count};
    std::vector<std::vector<Slot*>> slots{plan.makers};
    std::size_t period = 1;
    bool any_rate = false;

    Tables(std::mt19937& random, bool rated) : shape(random, rated), count(plan.most_window + random() % 3) {}

    void make_slots(Made& made) {
        for (std::size_t maker = 0; maker < plan.makers; ++maker) {
            OfMaker of{&made, static_cast<int>(maker)};
            const PinnedBuffer<std::byte, Host> before(7);
            for (std::size_t slot = 0; slot < count; ++slot) {
                table.make(maker, slot, slot_ops, &of, "some");
                slots[maker].push_back(static_cast<Slot*>(table.at(maker, slot)));
                CHECK(slots[maker].back()->maker == of.maker);
                CHECK(slots[maker].back()->number == static_cast<int>(slot));
                CHECK(table.of(slot)[maker] == slots[maker].back());
            }
            CHECK(table.bytes(maker).pinned == 100 * (maker + 1) * count);
            CHECK(table.bytes(maker).device == 10 * (maker + 1) * count);
        }
    }

    void lay_out() {
        std::size_t lanes = 1;
        bool any_told = false;
        for (std::size_t stage = 0; stage < stages; ++stage) {
            const detail::StagePlan& own = plan.stages[stage];
            any_told = any_told || own.takes_turn || own.takes_lane;
            any_rate = any_rate || model[stage].every > 1;
            period = std::lcm(period, model[stage].batches());
            const int of_stage = shape.setups[stage].options.lanes;
            if (own.takes_lane)
                lanes = std::lcm(lanes, static_cast<std::size_t>(of_stage));
            table.add_lanes(own.takes_lane ? of_stage : 0);
        }
        const bool any_row = any_told || any_rate || plan.most_window > 1;
        CHECK(rates.any() == any_rate);
        CHECK(rates.period() == period);
        table.lay_out_rows(plan, rates);
        CHECK(table.count() == count);
        CHECK(table.later_rows() == (any_row ? std::lcm(count * period, lanes) : count));
        CHECK(table.first_rows() == (any_row ? (plan.most_window - 1) * period : 0));
        for (std::size_t stage = 0; stage < stages; ++stage) {
            CHECK(rates.batches_a_run(stage) == model[stage].a_run);
            CHECK(rates.every(stage) == model[stage].every);
            CHECK(rates.batches_an_output(stage) == model[stage].batches());
        }
    }

    void check_plan() {
        CHECK(rates.plan().stages.size() == stages);
        CHECK(rates.plan().makers == plan.makers);
        for (std::size_t stage = 0; any_rate && stage < stages; ++stage) {
            CAPTURE(stage);
            // Each lasts until it has run again, and until what it reads from and who reads it have. Threads are told by semaphores.
            const detail::StagePlan& own = rates.plan().stages[stage];
            bool by_semaphore = own.aside;
            for (std::size_t other = 0; other < stages; ++other) {
                if (other != stage && !plan.reads_output(other, stage) &&
                    (other > stage || !plan.reads_output(stage, other)))
                    continue;
                by_semaphore = by_semaphore || plan.stages[other].aside;
            }
            CHECK(own.awaited);
            CHECK(own.reads_batch == plan.stages[stage].reads_batch);
            CHECK(own.needs_semaphore == by_semaphore);
            CHECK(own.needs_event == !own.aside);
        }
    }

    void begin_anew(std::size_t end) {
        rates.begin_anew(end);
        for (Counted& one : model)
            one.begin_anew();
        table.lay_out_rows(plan, rates);
    }
    void reset() {
        rates.reset();
        for (Counted& one : model)
            one.seen = one.runs_in = one.runs = one.outputs = 0;
        table.lay_out_rows(plan, rates);
    }
};

// Batches one after another, all counted from `begin`.
struct Batches {
    struct Kept {
        std::size_t run, content;
        bool runs;
    };
    Tables& of;
    const std::size_t begin;
    std::vector<std::vector<Kept>> kept{};
    std::vector<std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t>> phases{of.stages};
    std::vector<std::set<std::size_t>> numbers{of.stages};

    void step(std::size_t batch) {
        bool whole = true;
        for (const Counted& one : of.model)
            whole = whole && one.is_whole();
        CHECK(of.rates.is_whole(batch) == (whole || !of.any_rate));
        void* const* at = check_slots(batch);
        kept.emplace_back();
        for (std::size_t stage = 0; stage < of.stages; ++stage)
            check_stage(stage, batch, at);
        // Slots of this batch are known for all stages by now.
        for (std::size_t stage = 0; stage < of.stages; ++stage) {
            const int maker = of.plan.stages[stage].maker;
            if (maker >= 0)
                CHECK(of.rates.content_of(static_cast<std::size_t>(maker), batch) == of.model[stage].outputs);
        }
        if (of.any_rate)
            check_waits(batch);
        for (std::size_t stage = 0; stage < of.stages; ++stage) {
            kept.back()[stage].runs = of.model[stage].step();
            CHECK(of.rates.runs(stage, batch) == kept.back()[stage].runs);
        }
    }

    // What comes behind the slots in the row.
    void* const* check_slots(std::size_t batch) {
        void* const* at = of.table.row(batch, batch % of.count);
        const auto slot_of = [&](std::size_t maker, std::size_t back) -> void* {
            std::size_t content = 0;
            for (std::size_t stage = 0; stage < of.stages; ++stage) {
                if (of.plan.stages[stage].maker == static_cast<int>(maker))
                    content = of.model[stage].outputs;
            }
            return back > content ? nullptr : of.slots[maker][(content - back) % of.count];
        };
        for (std::size_t maker = 0; maker < of.plan.makers; ++maker)
            CHECK(*at++ == slot_of(maker, 0));
        for (std::size_t maker = 0; maker < of.plan.makers; ++maker) {
            for (std::size_t back = 0; of.plan.windows[maker] > 1 && back < of.plan.windows[maker]; ++back)
                CHECK(*at++ == slot_of(maker, back));
        }
        return at;
    }

    void check_stage(std::size_t stage, std::size_t batch, void* const*& at) {
        CAPTURE(stage);
        const detail::StagePlan& own = of.plan.stages[stage];
        const Counted before = of.model[stage];
        const Turn turn = before.every > 1
                              ? Turn{static_cast<int>(before.runs_in), static_cast<int>(before.every)}
                              : Turn{static_cast<int>(before.seen), static_cast<int>(before.a_run)};
        if (own.takes_turn) {
            const Turn& handed = *static_cast<const Turn*>(*at++);
            CHECK(handed.index == turn.index);
            CHECK(handed.count == turn.count);
        }
        if (own.takes_lane) {
            const Lane& handed = *static_cast<const Lane*>(*at++);
            CHECK(handed.count == of.shape.setups[stage].options.lanes);
            CHECK(handed.index == static_cast<int>(batch % static_cast<std::size_t>(handed.count)));
        }
        CHECK(of.rates.run_of(stage, batch) == before.runs);
        CHECK(of.rates.begins(stage, batch) == (before.runs_in == 0));
        std::vector<std::size_t> taken;
        for (const int from : own.takes) {
            if (from >= 0)
                taken.push_back(of.model[static_cast<std::size_t>(from)].outputs);
        }
        kept.back().push_back({before.runs, before.outputs, false});
        if (before.seen + 1 != before.a_run)
            return;
        // What it is handed when it runs: told apart by the number, and as many as are expected.
        for (std::size_t& content : taken)
            content %= of.count;
        const std::size_t phase = of.table.phase_of(of.plan, of.rates, stage, batch);
        const std::pair handed{static_cast<std::size_t>(own.takes_turn ? turn.index : 0), taken};
        CHECK(phases[stage].try_emplace(handed, phase).first->second == phase);
        numbers[stage].insert(phase);
        CHECK(numbers[stage].size() == phases[stage].size());
    }

    void check_waits(std::size_t batch) {
        for (std::size_t stage = 0; stage < of.stages; ++stage) {
            CAPTURE(stage);
            if (of.model[stage].seen + 1 != of.model[stage].a_run)
                continue;
            Waits waits;
            of.rates.for_each_wait(stage, batch, of.count, [&](std::size_t other, std::size_t number) {
                waits.push_back({other, number});
            });
            std::sort(waits.begin(), waits.end());
            Waits expected = waits_of(of.shape, of.model, of.count, stage, begin, batch);
            std::sort(expected.begin(), expected.end());
            CHECK(waits == expected);
        }
    }

    void check_ways() {
        for (std::size_t stage = 0; stage < of.stages; ++stage) {
            CAPTURE(stage);
            const std::size_t most = of.table.later_rows() / of.model[stage].a_run;
            const std::size_t ways = of.table.ways_of(of.plan, of.rates, stage);
            CHECK(numbers[stage].size() <= ways);
            std::size_t all = of.plan.stages[stage].takes_turn ? most : 1;
            for (const int from : of.plan.stages[stage].takes)
                all = from < 0 ? all : all * of.count;
            CHECK(ways == std::min(all, most));
        }
    }

    // Those of before are still told, also once all have begun anew.
    void check_kept(std::size_t end) {
        for (std::size_t batch = begin; batch < end; ++batch) {
            CAPTURE(batch);
            for (std::size_t stage = 0; stage < of.stages; ++stage) {
                CAPTURE(stage);
                const Kept& one = kept[batch - begin][stage];
                CHECK(of.rates.run_of(stage, batch) == one.run);
                CHECK(of.rates.runs(stage, batch) == one.runs);
                const std::size_t batches = of.model[stage].batches();
                std::size_t next = batch;
                while ((next - begin + 1) % batches != 0)
                    ++next;
                CHECK(of.rates.next_output(stage, batch) == std::min(next, end - 1));
                CHECK(of.rates.next_output(stage, end + batch - begin) == next + end - begin);
            }
        }
    }
};

} // namespace

TEST_CASE("core: rates, slots and what stages are handed, batch by batch") {
    std::mt19937 random(5);
    for (int round = 0; round < 600; ++round) {
        CAPTURE(round);
        Made made;
        std::vector<std::pair<int, int>> expected;
        {
            Tables tables(random, round % 3 != 0);
            for (std::size_t maker = tables.plan.makers; maker-- > 0;) {
                for (std::size_t slot = 0; slot < tables.count; ++slot)
                    expected.push_back({static_cast<int>(maker), static_cast<int>(slot)});
            }
            tables.make_slots(made);
            tables.lay_out();
            tables.check_plan();
            // They begin anew, in the middle of runs too, twice, and count from 0 again in the end.
            std::size_t batch = 0;
            for (int part = 0; part < 4; ++part) {
                CAPTURE(part);
                if (part == 3) {
                    tables.reset();
                    batch = 0;
                }
                if (tables.any_rate)
                    CHECK(tables.rates.begin() == (part == 3 ? 0 : batch));
                Batches batches{tables, batch};
                const std::size_t end = batch + 1 + random() % (3 * tables.period * tables.count + 5);
                for (; batch < end; ++batch) {
                    CAPTURE(batch);
                    batches.step(batch);
                }
                batches.check_ways();
                if (part < 2 && tables.any_rate) {
                    tables.begin_anew(end);
                    batches.check_kept(end);
                }
            }
        }
        CHECK(made.destroyed == expected);
    }
}

TEST_CASE("core: what does not go together with rates is refused, and nothing else") {
    const auto stage = [](int maker, bool hands_on, bool reads_batch) {
        detail::StagePlan plan;
        plan.maker = maker;
        plan.hands_on = hands_on;
        plan.reads_batch = reads_batch;
        return plan;
    };
    // Of a second stage, behind one that runs `every` times for a slot.
    const auto refused = [&](int every, const detail::StagePlan& second, int own_every, int lanes) {
        const std::string first_name = "first", name = "second";
        const bool reads[4]{false, false, true, false};
        const int takes[1]{0};
        const std::size_t windows[2]{1, 1};
        detail::StagePlan both[2]{stage(0, false, true), second};
        both[1].takes = takes;
        both[1].windows = {windows, 1};
        detail::PlanData plan;
        plan.stages = both;
        plan.reads = plan.holds = reads;
        plan.makers = 2;
        plan.windows = windows;
        const Setup setups[2]{{{every, 1}, &first_name}, {{own_every, lanes}, &name}};
        std::string text;
        try {
            const detail::StageRates rates(plan, setups);
        } catch (const Error& error) {
            text = error.what();
        }
        return text;
    };
    const detail::StagePlan makes = stage(1, false, false), nothing = stage(-1, false, false),
                            changes = stage(0, true, false), reads = stage(1, false, true);
    CHECK(refused(0, makes, 1, 1) == "stage 'first': StageOptions::every is 0; expected 1 to 16777216");
    CHECK(refused(1, makes, -1, 1) == "stage 'second': StageOptions::every is -1; expected 1 to 16777216");
    const std::string kinds =
        "stage 'second': StageOptions::every is for a stage that makes something of its own; this one ";
    CHECK(refused(1, nothing, 2, 1) == kinds + "makes nothing");
    CHECK(refused(1, changes, 2, 1) == kinds + "changes what another one makes");
    CHECK(refused(2, nothing, 1, 1) == "");
    CHECK(refused(2, changes, 1, 1) == "");
    CHECK(refused(1, makes, 2, 1) == "");
    CHECK(refused(2, reads, 1, 1) == "stage 'second': it runs once for 2 batches, and cannot take the batch "
                                     "itself; let an earlier stage hand on "
                                     "what it needs");
    CHECK(refused(1, reads, 2, 1) == "");
    const std::string lanes =
        "stage 'second': a stage with StageOptions::every, or one behind it, cannot have lanes, got 2";
    CHECK(refused(2, makes, 1, 2) == lanes);
    CHECK(refused(1, makes, 2, 2) == lanes);
    CHECK(refused(1, makes, 1, 2) == "");
}

} // namespace pipeline_core_tables
