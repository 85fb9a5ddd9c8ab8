// What the core looks up by a batch's number, against models that go from batch to batch.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <sluice/pipeline/detail/core/slot_table.hpp>
#include <sluice/pipeline/detail/core/stage_rates.hpp>
#include <sluice/sluice.hpp>

namespace pipeline_core_tables {

using namespace sluice;

namespace {

constexpr std::size_t most_stages = 4;

struct Setup {
    struct {
        int every = 1;
        int lanes = 1;
    } options;
    const std::string* name = nullptr;
};

// Stages of which each may have slots of its own, and reads some of those before it.
struct Shape {
    std::array<detail::StagePlan, most_stages> stages{};
    std::array<bool, most_stages * most_stages> reads{};
    std::array<std::vector<int>, most_stages> takes;
    std::array<std::vector<std::size_t>, most_stages> windows;
    std::array<std::size_t, most_stages> of_maker{};
    std::array<Setup, most_stages> setups{};
    std::string name = "some";
    detail::PlanData plan;

    Shape(std::mt19937& random, bool rated) {
        const auto below = [&](unsigned end) { return random() % end; };
        const std::size_t count = 1 + below(most_stages);
        std::array<std::size_t, most_stages> output{}; // of so many batches
        bool any = false;
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t batches = 1;
            for (std::size_t j = 0; j < i; ++j) {
                if (j + 1 != i && below(2) == 0)
                    continue;
                reads[i * count + j] = true;
                const std::size_t window = below(3) == 0 ? 2 + below(2) : 1;
                takes[i].push_back(static_cast<int>(j));
                windows[i].push_back(window);
                of_maker[j] = std::max(of_maker[j], window);
                batches = std::lcm(batches, output[j]);
            }
            detail::StagePlan& stage = stages[i];
            if (i == 0) {
                takes[i].push_back(detail::from_batch);
                windows[i].push_back(1);
            }
            // The last one may have no slots.
            if (i + 1 < count || count == 1 || below(2) == 0) {
                stage.maker = static_cast<int>(plan.makers++);
                of_maker[i] = 1;
                takes[i].push_back(static_cast<int>(i));
                windows[i].push_back(1);
                if (rated)
                    setups[i].options.every = 1 + static_cast<int>(below(3));
            }
            stage.takes_turn = below(5) == 0;
            stage.takes_lane = below(5) == 0;
            if (batches == 1 && setups[i].options.every == 1)
                setups[i].options.lanes = 1 + static_cast<int>(below(3));
            output[i] = batches * static_cast<std::size_t>(setups[i].options.every);
            setups[i].name = &name;
            any = any || setups[i].options.every > 1;
            stage.reads_batch = batches == 1 && below(2) == 0;
            stage.aside = below(4) == 0;
            stage.takes = takes[i];
            stage.windows = windows[i];
        }
        plan.stages = {stages.data(), count};
        plan.reads = plan.holds = reads.data();
        plan.windows = {of_maker.data(), plan.makers};
        for (const std::size_t window : plan.windows)
            plan.most_window = std::max(plan.most_window, window);
    }
};

// What is known of one stage before a batch.
struct Counted {
    std::size_t a_run = 1, every = 1; // Batches for a run, and runs for an output.
    std::size_t seen = 0;             // Batches of the run that is under way,
    std::size_t runs_in = 0;          // and runs of the output.
    std::size_t runs = 0, outputs = 0;

    std::size_t batches() const { return a_run * every; }
    bool is_whole() const { return seen == 0 && runs_in == 0; }
    bool step() { // whether it runs for this batch
        if (++seen < a_run)
            return false;
        seen = 0;
        ++runs;
        if (++runs_in == every) {
            runs_in = 0;
            ++outputs;
        }
        return true;
    }
    void begin_anew() {
        runs += seen > 0 ? 1 : 0;
        outputs += seen > 0 || runs_in > 0 ? 1 : 0;
        seen = runs_in = 0;
    }
};

std::vector<Counted> counted(const Shape& shape) {
    std::vector<Counted> all(shape.plan.stages.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (shape.plan.reads_output(i, j))
                all[i].a_run = std::lcm(all[i].a_run, all[j].batches());
        }
        all[i].every = static_cast<std::size_t>(shape.setups[i].options.every);
    }
    return all;
}

using Waits = std::vector<std::pair<std::size_t, std::size_t>>;

// All that the run on batch `number` comes after, where all count from `begin`, found by looking at each batch before it.
Waits waits_of(const Shape& shape, const std::vector<Counted>& model, std::size_t slots, std::size_t stage,
               std::size_t begin, std::size_t number) {
    const detail::PlanData& plan = shape.plan;
    Waits all;
    for (std::size_t of = 0; of < stage; ++of) {
        if (plan.reads_output(stage, of))
            all.push_back({of, number});
    }
    const std::size_t local = number - begin, own = model[stage].a_run, batches = model[stage].batches();
    if (plan.stages[stage].maker < 0) {
        if (local >= slots * own)
            all.push_back({stage, number - slots * own});
        return all;
    }
    if (local / own % model[stage].every != 0)
        return all;
    // What was in the slot before; stages that take several are through it with later ones.
    const auto former = static_cast<std::int64_t>(local / batches) - static_cast<std::int64_t>(slots);
    for (std::size_t reader = stage; reader < plan.stages.size(); ++reader) {
        if (reader != stage && !plan.reads_output(reader, stage))
            continue;
        std::int64_t ahead = 0;
        for (std::size_t i = 0; i < shape.takes[reader].size(); ++i) {
            if (reader != stage && shape.takes[reader][i] == static_cast<int>(stage))
                ahead = static_cast<std::int64_t>(shape.windows[reader][i]) - 1;
        }
        std::optional<std::size_t> last;
        for (std::size_t batch = 0; batch < local; ++batch) {
            const auto newest = static_cast<std::int64_t>(batch / batches);
            if ((batch + 1) % model[reader].a_run == 0 && newest - ahead <= former && former <= newest)
                last = batch;
        }
        if (last)
            all.push_back({reader, begin + *last});
    }
    return all;
}

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

} // namespace

TEST_CASE("core: rates, slots and what stages are handed, batch by batch") {
    std::mt19937 random(5);
    for (int round = 0; round < 600; ++round) {
        CAPTURE(round);
        const bool rated = round % 3 != 0;
        const Shape shape(random, rated);
        const detail::PlanData& plan = shape.plan;
        const std::size_t stages = plan.stages.size();
        detail::StageRates rates(plan, shape.setups.data());
        std::vector<Counted> model = counted(shape);
        const std::size_t count = plan.most_window + random() % 3;
        Made made;
        {
            detail::SlotTable table(plan.makers, count);
            std::vector<std::vector<Slot*>> slots(plan.makers);
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
            std::size_t period = 1, lanes = 1;
            bool any_told = false, any_rate = false;
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

            CHECK(rates.plan().stages.size() == stages);
            CHECK(rates.plan().makers == plan.makers);
            for (std::size_t stage = 0; any_rate && stage < stages; ++stage) {
                CAPTURE(stage);
                // Each lasts until it has run again, and until what it reads from and who reads it have. Threads are told by semaphores.
                const detail::StagePlan& own = rates.plan().stages[stage];
                bool by_event = !own.aside, by_semaphore = own.aside;
                for (std::size_t other = 0; other < stages; ++other) {
                    if (other != stage && !plan.reads_output(other, stage) &&
                        (other > stage || !plan.reads_output(stage, other)))
                        continue;
                    by_semaphore = by_semaphore || plan.stages[other].aside;
                }
                CHECK(own.awaited);
                CHECK(own.reads_batch == plan.stages[stage].reads_batch);
                CHECK(own.needs_semaphore == by_semaphore);
                CHECK(own.needs_event == by_event);
            }

            // They begin anew, in the middle of runs too, twice, and count from 0 again in the end.
            std::size_t batch = 0;
            for (int part = 0; part < 4; ++part) {
                CAPTURE(part);
                if (part == 3) {
                    rates.reset();
                    batch = 0;
                    for (Counted& one : model)
                        one.seen = one.runs_in = one.runs = one.outputs = 0;
                    table.lay_out_rows(plan, rates);
                }
                if (any_rate)
                    CHECK(rates.begin() == (part == 3 ? 0 : batch));
                const std::size_t begin = batch, end = begin + 1 + random() % (3 * period * count + 5);
                struct Kept {
                    std::size_t run, content;
                    bool runs;
                };
                std::vector<std::vector<Kept>> kept;
                std::vector<std::map<std::pair<std::size_t, std::vector<std::size_t>>, std::size_t>> phases(
                    stages);
                std::vector<std::set<std::size_t>> numbers(stages);
                for (; batch < end; ++batch) {
                    CAPTURE(batch);
                    bool whole = true;
                    for (const Counted& one : model)
                        whole = whole && one.is_whole();
                    CHECK(rates.is_whole(batch) == (whole || !any_rate));
                    void* const* at = table.row(batch, batch % count);
                    const auto slot_of = [&](std::size_t maker, std::size_t back) -> void* {
                        std::size_t content = 0;
                        for (std::size_t stage = 0; stage < stages; ++stage) {
                            if (plan.stages[stage].maker == static_cast<int>(maker))
                                content = model[stage].outputs;
                        }
                        return back > content ? nullptr : slots[maker][(content - back) % count];
                    };
                    for (std::size_t maker = 0; maker < plan.makers; ++maker)
                        CHECK(*at++ == slot_of(maker, 0));
                    for (std::size_t maker = 0; maker < plan.makers; ++maker) {
                        for (std::size_t back = 0; plan.windows[maker] > 1 && back < plan.windows[maker];
                             ++back)
                            CHECK(*at++ == slot_of(maker, back));
                    }
                    kept.emplace_back();
                    for (std::size_t stage = 0; stage < stages; ++stage) {
                        CAPTURE(stage);
                        const detail::StagePlan& own = plan.stages[stage];
                        const Counted before = model[stage];
                        const Turn turn =
                            before.every > 1
                                ? Turn{static_cast<int>(before.runs_in), static_cast<int>(before.every)}
                                : Turn{static_cast<int>(before.seen), static_cast<int>(before.a_run)};
                        if (own.takes_turn) {
                            const Turn& handed = *static_cast<const Turn*>(*at++);
                            CHECK(handed.index == turn.index);
                            CHECK(handed.count == turn.count);
                        }
                        if (own.takes_lane) {
                            const Lane& handed = *static_cast<const Lane*>(*at++);
                            CHECK(handed.count == shape.setups[stage].options.lanes);
                            CHECK(handed.index ==
                                  static_cast<int>(batch % static_cast<std::size_t>(handed.count)));
                        }
                        CHECK(rates.run_of(stage, batch) == before.runs);
                        CHECK(rates.begins(stage, batch) == (before.runs_in == 0));
                        std::vector<std::size_t> taken;
                        for (const int from : own.takes) {
                            if (from >= 0)
                                taken.push_back(model[static_cast<std::size_t>(from)].outputs);
                        }
                        kept.back().push_back({before.runs, before.outputs, false});
                        // What it is handed when it runs: told apart by the number, and as many as are expected.
                        if (before.seen + 1 == before.a_run) {
                            for (std::size_t& content : taken)
                                content %= count;
                            const std::size_t phase = table.phase_of(plan, rates, stage, batch);
                            const std::pair handed{static_cast<std::size_t>(own.takes_turn ? turn.index : 0),
                                                   taken};
                            CHECK(phases[stage].try_emplace(handed, phase).first->second == phase);
                            numbers[stage].insert(phase);
                            CHECK(numbers[stage].size() == phases[stage].size());
                        }
                    }
                    // Slots of this batch are known for all stages by now.
                    for (std::size_t stage = 0; stage < stages; ++stage) {
                        const int maker = plan.stages[stage].maker;
                        if (maker >= 0)
                            CHECK(rates.content_of(static_cast<std::size_t>(maker), batch) ==
                                  model[stage].outputs);
                    }
                    for (std::size_t stage = 0; any_rate && stage < stages; ++stage) {
                        CAPTURE(stage);
                        if (model[stage].seen + 1 != model[stage].a_run)
                            continue;
                        Waits waits;
                        rates.for_each_wait(stage, batch, count, [&](std::size_t of, std::size_t number) {
                            waits.push_back({of, number});
                        });
                        std::sort(waits.begin(), waits.end());
                        Waits expected = waits_of(shape, model, count, stage, begin, batch);
                        std::sort(expected.begin(), expected.end());
                        CHECK(waits == expected);
                    }
                    for (std::size_t stage = 0; stage < stages; ++stage) {
                        kept.back()[stage].runs = model[stage].step();
                        CHECK(rates.runs(stage, batch) == kept.back()[stage].runs);
                    }
                }
                for (std::size_t stage = 0; stage < stages; ++stage) {
                    CAPTURE(stage);
                    const std::size_t most = table.later_rows() / model[stage].a_run;
                    const std::size_t ways = table.ways_of(plan, rates, stage);
                    CHECK(numbers[stage].size() <= ways);
                    std::size_t all = plan.stages[stage].takes_turn ? most : 1;
                    for (const int from : plan.stages[stage].takes)
                        all = from < 0 ? all : all * count;
                    CHECK(ways == std::min(all, most));
                }
                // Those of before are still told, also once all have begun anew.
                if (part < 2 && any_rate) {
                    rates.begin_anew(end);
                    for (Counted& one : model)
                        one.begin_anew();
                    table.lay_out_rows(plan, rates);
                    for (std::size_t of = begin; of < end; ++of) {
                        CAPTURE(of);
                        for (std::size_t stage = 0; stage < stages; ++stage) {
                            CAPTURE(stage);
                            const Kept& one = kept[of - begin][stage];
                            CHECK(rates.run_of(stage, of) == one.run);
                            CHECK(rates.runs(stage, of) == one.runs);
                            const std::size_t batches = model[stage].batches();
                            std::size_t next = of;
                            while ((next - begin + 1) % batches != 0)
                                ++next;
                            CHECK(rates.next_output(stage, of) == std::min(next, end - 1));
                            CHECK(rates.next_output(stage, end + of - begin) == next + end - begin);
                        }
                    }
                }
            }
        }
        std::vector<std::pair<int, int>> expected;
        for (std::size_t maker = plan.makers; maker-- > 0;) {
            for (std::size_t slot = 0; slot < count; ++slot)
                expected.push_back({static_cast<int>(maker), static_cast<int>(slot)});
        }
        CHECK(made.destroyed == expected);
    }
}

} // namespace pipeline_core_tables
