// Stages that are drawn, and a model of their runs and waits that goes from batch to batch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <sluice/sluice.hpp>

namespace pipeline_core_tables {

using namespace sluice;

inline constexpr std::size_t most_stages = 4;

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

inline std::vector<Counted> counted(const Shape& shape) {
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
inline Waits waits_of(const Shape& shape, const std::vector<Counted>& model, std::size_t slots,
                      std::size_t stage, std::size_t begin, std::size_t number) {
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

} // namespace pipeline_core_tables
