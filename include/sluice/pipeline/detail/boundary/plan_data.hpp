// The plan of a pipeline as data: what is the same code for all pipelines reads it from here.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace sluice::detail {

/// Where a parameter comes from that is no stage's output.
inline constexpr int from_batch = -1;
inline constexpr int from_turn = -2;
inline constexpr int from_lane = -3;

/// One wait of a stage's work on a batch: until `stage` is through this batch, or, `former`, through the one that was in the
/// same slots before.
struct PlanWait {
    std::size_t stage = 0;
    bool former = false;
    std::size_t ahead = 0; ///< Through so many more, which take the slot as well.
};

/// What is known of a stage at compile time.
struct StagePlan {
    bool aside = false;       ///< It runs on threads beside the backend's streams.
    bool is_cpu = false;      ///< Its callable takes no stream.
    bool as_task = false;     ///< It is called on its stream's thread.
    bool capturable = true;   ///< Its work can be captured.
    bool reads_batch = false; ///< It takes the batch.
    bool awaited = false;     ///< Another stage waits for it.
    bool needs_event = false; ///< See `Shape`.
    bool needs_semaphore = false;
    std::size_t depth = 0; ///< How many stages must have come first, on the longest way.
    std::size_t waits_begin = 0, waits_end = 0;
    int maker = -1;          ///< What makes its slots; -1: it has none.
    bool takes_turn = false; ///< It is told which of several batches each one is,
    bool takes_lane = false; ///< or which of its lanes works on it.
    bool hands_on = false;   ///< They are an earlier stage's, which it changes.
    std::size_t window = 1;  ///< It takes what was made of so many batches.
    std::span<const int>
        takes; ///< Whose output each of its parameters is, its own among them, `from_batch`, `from_turn`, or `from_lane`,
    std::span<const std::size_t> windows; ///< and, above 1, of how many batches.
};

/// A view of a plan, whose tables are constants.
struct PlanData {
    std::span<const StagePlan> stages;
    std::span<const PlanWait> waits; ///< stage by stage; of each, those for the same batch come first
    const bool* reads = nullptr;     ///< `[i * stages + j]`: stage i reads the output of stage j,
    const bool* holds = nullptr;     ///< or takes the slot that stage j has made, changed or not
    std::size_t makers = 0;
    std::span<const std::size_t>
        windows; ///< Of each maker's slots, the most batches of which a stage takes what was made,
    std::size_t most_window = 1; ///< and the most of all.
    bool all_capturable = true;
    bool batch_is_read = false;

    std::span<const PlanWait> waits_of(std::size_t stage) const noexcept {
        return {waits.data() + stages[stage].waits_begin, waits.data() + stages[stage].waits_end};
    }
    bool reads_output(std::size_t stage, std::size_t of) const noexcept {
        return reads[stage * stages.size() + of];
    }
    bool takes_slot_of(std::size_t stage, std::size_t of) const noexcept {
        return holds[stage * stages.size() + of];
    }
};

/// The tables of one shape.
template <class Shape>
class PlanTables {
    static constexpr std::size_t count = Shape::stages;
    struct Tables {
        std::array<StagePlan, count> stages{};
        std::array<PlanWait, 2 * count * count> waits{};
        std::array<bool, count * count> reads{};
        std::array<bool, count * count> holds{};
        std::array<std::size_t, Shape::makers + 1> windows{};
        std::size_t wait_count = 0;
        bool batch_is_read = false;
    };
    static constexpr Tables make() {
        Tables all;
        const auto add = [&](std::size_t stage, bool former) {
            for (std::size_t other = 0; other < count; ++other) {
                if (former ? Shape::edges.former[stage][other] : Shape::edges.same[stage][other])
                    all.waits[all.wait_count++] = {other, former,
                                                   former ? Shape::edges.ahead[stage][other] : 0};
            }
        };
        for (std::size_t i = 0; i < count; ++i) {
            StagePlan& stage = all.stages[i];
            stage.aside = Shape::aside[i];
            stage.is_cpu = Shape::cpu[i];
            stage.as_task = Shape::as_task[i];
            stage.capturable = Shape::capturable[i];
            stage.reads_batch = Shape::bindings.reads_batch[i];
            stage.awaited = Shape::edges.awaited[i];
            stage.needs_event = Shape::needs_event(i);
            stage.needs_semaphore = Shape::needs_semaphore(i);
            stage.depth = Shape::edges.depth[i];
            stage.maker = Shape::sound ? Shape::bindings.stages[i].maker : -1;
            stage.hands_on = Shape::bindings.stages[i].hands_on;
            stage.takes_turn = Shape::bindings.is_told(i, from_turn);
            stage.takes_lane = Shape::bindings.is_told(i, from_lane);
            for (const std::size_t window : Shape::bindings.stages[i].window)
                stage.window = window > stage.window ? window : stage.window;
            const auto& own = Shape::bindings.stages[i];
            stage.takes = {own.from.data(), own.count};
            stage.windows = {own.window.data(), own.count};
            stage.waits_begin = all.wait_count;
            add(i, false);
            add(i, true);
            stage.waits_end = all.wait_count;
            all.batch_is_read = all.batch_is_read || stage.reads_batch;
            for (std::size_t j = 0; j < count; ++j) {
                all.reads[i * count + j] = Shape::bindings.reads[i][j];
                all.holds[i * count + j] = Shape::bindings.takes_slot_of(i, j);
            }
            if (stage.maker >= 0)
                all.windows[static_cast<std::size_t>(stage.maker)] =
                    Shape::bindings.window_of(static_cast<std::size_t>(stage.maker));
        }
        return all;
    }
    static constexpr Tables tables = make();

public:
    static constexpr PlanData data{tables.stages,
                                   {tables.waits.data(), tables.wait_count},
                                   tables.reads.data(),
                                   tables.holds.data(),
                                   Shape::makers,
                                   {tables.windows.data(), Shape::makers},
                                   Shape::bindings.most_window,
                                   Shape::all_capturable,
                                   tables.batch_is_read};
};

} // namespace sluice::detail
