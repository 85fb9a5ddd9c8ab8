// How often each stage of a pipeline runs, and which slot a batch's work is in then.
#pragma once

#include <cstddef>
#include <string>

#include <sluice/backend/detail/list.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/pipeline/detail/boundary/plan_data.hpp>
#include <sluice/pipeline/detail/boundary/stage_call.hpp>
#include <sluice/pipeline/detail/core/step_lags.hpp>
#include <sluice/pipeline/parameters.hpp>

namespace sluice::detail {

/// The least one.
inline std::size_t common_multiple(std::size_t a, std::size_t b) noexcept {
    std::size_t multiple = a;
    while (multiple % b != 0)
        multiple += a;
    return multiple;
}

/// A stage runs once for as many batches as what it reads is made of, on the last of them; its slot changes once it has run
/// `StageOptions::every` times. All that is asked for is a function of a batch's number.
///
/// Where no stage asks for more than 1, this holds nothing, and is not asked.
class StageRates {
public:
    /// Throws `Error` for what does not go together.
    template <class Setup>
    StageRates(const PlanData& plan, const Setup* setups) : plan_(plan) {
        bool any = false;
        for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
            const int every = setups[stage].options.every;
            require_within("stage '" + *setups[stage].name + "': StageOptions::every", every, 1, 1 << 24);
            any = any || every > 1;
        }
        if (any)
            find(setups);
    }
    StageRates& operator=(StageRates&&) = delete;

    /// Whether any stage runs, or changes its slot, less often than once a batch.
    bool any() const noexcept { return any_; }
    /// After so many batches all stages have run, and all slots have changed, a whole number of times.
    std::size_t period() const noexcept { return period_; }
    /// Whether a stage runs for this batch.
    bool runs(std::size_t stage, std::size_t batch) const noexcept {
        return !any() || (batch - begin_of(batch).batch + 1) % a_run_[stage] == 0;
    }
    /// Whether all stages have run a whole number of times before this batch, and all slots have changed.
    bool is_whole(std::size_t batch) const noexcept {
        return !any() || (batch - begin_.batch) % period_ == 0;
    }
    /// From batch `batch` on all begin anew, since stages have run for fewer batches than they run for. Nothing is under way.
    void begin_anew(std::size_t batch) {
        Begin next{batch, begin_.runs, begin_.contents};
        for (std::size_t stage = 0; stage < a_run_.size(); ++stage)
            next.runs[stage] = begin_.runs[stage] + over(batch - begin_.batch, a_run_[stage]);
        for (std::size_t maker = 0; maker < a_content_.size(); ++maker)
            next.contents[maker] = begin_.contents[maker] + over(batch - begin_.batch, a_content_[maker]);
        former_ = begin_;
        begin_ = next;
    }
    /// Batches count from 0 again.
    void reset() {
        for (std::size_t& run : begin_.runs)
            run = 0;
        for (std::size_t& content : begin_.contents)
            content = 0;
        begin_.batch = 0;
    }
    /// Batches that one output of a stage is made of.
    std::size_t batches_an_output(std::size_t stage) const noexcept {
        return any() ? a_run_[stage] * every_[stage] : 1;
    }
    /// The batch from `batch` on with which an output of a stage is whole, or as whole as it gets.
    std::size_t next_output(std::size_t stage, std::size_t batch) const noexcept {
        if (!any())
            return batch;
        const std::size_t begin = begin_of(batch).batch, batches = batches_an_output(stage);
        const std::size_t next = begin + (batch - begin + batches) / batches * batches - 1;
        return batch < begin_.batch ? smaller(next, begin_.batch - 1) : next;
    }
    /// Batches for each of which a stage runs once.
    std::size_t batches_a_run(std::size_t stage) const noexcept { return any() ? a_run_[stage] : 1; }
    /// Runs for each of which its slot changes once.
    std::size_t every(std::size_t stage) const noexcept { return any() ? every_[stage] : 1; }
    /// The number of the run that is for a batch.
    std::size_t run_of(std::size_t stage, std::size_t batch) const noexcept {
        if (!any()) [[likely]]
            return batch;
        const Begin& begin = begin_of(batch);
        return begin.runs[stage] + (batch - begin.batch) / a_run_[stage];
    }
    /// The number of what is in a maker's slot then; the slot is that by the slots.
    std::size_t content_of(std::size_t maker, std::size_t batch) const noexcept {
        if (!any()) [[likely]]
            return batch;
        const Begin& begin = begin_of(batch);
        return begin.contents[maker] + (batch - begin.batch) / a_content_[maker];
    }
    /// Whether a stage's slot has nothing of this batch's content yet when it runs.
    bool begins(std::size_t stage, std::size_t batch) const noexcept {
        return !any() || (batch - begin_.batch) / a_run_[stage] % every_[stage] == 0;
    }
    /// From this one on, and where nothing was left out before.
    std::size_t begin() const noexcept { return begin_.batch; }
    /// What a stage that takes a `Turn` is handed for a batch.
    const Turn* turn_of(std::size_t stage, std::size_t batch) const noexcept {
        static constexpr Turn alone{};
        if (!any())
            return &alone;
        const std::size_t since = batch - begin_.batch, every = every_[stage];
        return &turns_[first_turn_[stage] +
                       (every > 1 ? since / a_run_[stage] % every : since % a_run_[stage])];
    }
    /// The plan, with all waits: what others imply where all stages run once a batch, they do not imply here.
    const PlanData& plan() const noexcept { return any() ? rated_ : plan_; }

    /// Calls `visit(stage, batch)` for all that a stage's run on batch `number` comes after, where there are so many slots.
    template <class Visit>
    void for_each_wait(std::size_t stage, std::size_t number, std::size_t slots, Visit&& visit) const {
        for (const PlanWait& wait : rated_.waits_of(stage)) {
            if (!wait.former) {
                visit(wait.stage, number);
            } else if (begins(stage, number)) {
                await_former(wait, stage, number, slots, visit);
            }
        }
    }

private:
    // From where all count on.
    struct Begin {
        std::size_t batch = 0;
        List<std::size_t> runs;     // of each stage before it,
        List<std::size_t> contents; // and of each maker
    };
    // Of batches before the latest one, the one before: their results may still be asked for.
    const Begin& begin_of(std::size_t batch) const noexcept {
        return batch < begin_.batch ? former_ : begin_;
    }
    static std::size_t over(std::size_t count, std::size_t by) noexcept { return (count + by - 1) / by; }

    template <class Setup>
    void find(const Setup* setups) {
        const std::size_t stages = plan_.stages.size();
        a_run_.assign(stages, 1);
        every_.assign(stages, 1);
        first_turn_.assign(stages, 0);
        a_content_.assign(plan_.makers, 1);
        for (std::size_t stage = 0; stage < stages; ++stage) {
            const StagePlan& own = plan_.stages[stage];
            for (std::size_t of = 0; of < stage; ++of) {
                if (plan_.reads_output(stage, of))
                    a_run_[stage] = common_multiple(a_run_[stage], a_run_[of] * every_[of]);
                require_period(*setups[stage].name, a_run_[stage]);
            }
            every_[stage] = static_cast<std::size_t>(setups[stage].options.every);
            require_fit(*setups[stage].name, stage, setups[stage].options.lanes);
            const std::size_t batches = a_run_[stage] * every_[stage];
            require_period(*setups[stage].name, batches);
            if (own.maker >= 0 && !own.hands_on)
                a_content_[static_cast<std::size_t>(own.maker)] = batches;
            period_ = common_multiple(period_, batches);
            require_period(*setups[stage].name, period_);
            first_turn_[stage] = turns_.size();
            const std::size_t count = every_[stage] > 1 ? every_[stage] : a_run_[stage];
            for (std::size_t index = 0; own.takes_turn && index < count; ++index)
                turns_.push_back(Turn{static_cast<int>(index), static_cast<int>(count)});
        }
        any_ = true;
        begin_.runs.assign(stages, 0);
        begin_.contents.assign(plan_.makers, 0);
        make_plan();
    }
    // What stages are handed is laid out for so many batches.
    static void require_period(const std::string& name, std::size_t batches) {
        constexpr std::size_t most = std::size_t{1} << 24;
        if (batches > most) {
            throw Error("stage '" + name +
                        "': with StageOptions::every, of it and the stages before, work repeats after " +
                        std::to_string(batches) + " batches; expected " + std::to_string(most) + " at most");
        }
    }
    void require_fit(const std::string& name, std::size_t number, int lanes) const {
        const StagePlan& own = plan_.stages[number];
        const std::size_t runs = a_run_[number], every = every_[number];
        const std::string stage = "stage '" + name + "': ";
        if (every > 1 && (own.maker < 0 || own.hands_on)) {
            throw Error(stage +
                        "StageOptions::every is for a stage that makes something of its own; this one " +
                        (own.hands_on ? "changes what another one makes" : "makes nothing"));
        }
        if (runs > 1 && own.reads_batch) {
            throw Error(
                stage + "it runs once for " + std::to_string(runs) +
                " batches, and cannot take the batch itself; let an earlier stage hand on what it needs");
        }
        if ((runs > 1 || every > 1) && lanes > 1) {
            throw Error(stage +
                        "a stage with StageOptions::every, or one behind it, cannot have lanes, got " +
                        std::to_string(lanes));
        }
    }

    // Each stage waits for all whose outputs it reads, and for all that take its slot.
    void make_plan() {
        const std::size_t stages = plan_.stages.size();
        for (std::size_t stage = 0; stage < stages; ++stage) {
            StagePlan own = plan_.stages[stage];
            own.waits_begin = waits_.size();
            for (std::size_t of = 0; of < stage; ++of) {
                if (plan_.reads_output(stage, of))
                    waits_.push_back({of, false, 0});
            }
            waits_.push_back({stage, true, 0}); // its lanes
            for (std::size_t reader = stage + 1; own.maker >= 0 && !own.hands_on && reader < stages;
                 ++reader) {
                if (plan_.takes_slot_of(reader, stage))
                    waits_.push_back({reader, true, window_of(reader, own.maker) - 1});
            }
            own.waits_end = waits_.size();
            own.awaited = true;
            stages_.push_back(own);
        }
        const auto awaited_aside = [&](std::size_t stage) {
            for (const StagePlan& other : stages_) {
                for (std::size_t i = other.waits_begin; i < other.waits_end; ++i) {
                    if (waits_[i].stage == stage && other.aside)
                        return true;
                }
            }
            return false;
        };
        for (std::size_t stage = 0; stage < stages; ++stage) {
            StagePlan& own = stages_[stage];
            own.needs_semaphore = own.aside || awaited_aside(stage);
            own.needs_event = !own.aside; // its next runs wait for it
        }
        rated_ = plan_;
        rated_.stages = {stages_.data(), stages_.size()};
        rated_.waits = {waits_.data(), waits_.size()};
    }
    // For how many contents a stage takes a maker's slot.
    std::size_t window_of(std::size_t stage, int maker) const {
        const StagePlan& own = plan_.stages[stage];
        std::size_t window = 1;
        for (std::size_t i = 0; i < own.takes.size(); ++i) {
            if (own.takes[i] >= 0 && plan_.stages[static_cast<std::size_t>(own.takes[i])].maker == maker)
                window = larger(window, own.windows[i]);
        }
        return window;
    }

    // The last run of `wait.stage` that takes what was in the slot before.
    template <class Visit>
    void await_former(const PlanWait& wait, std::size_t stage, std::size_t number, std::size_t slots,
                      Visit&& visit) const {
        const std::size_t batches = a_run_[stage] * every_[stage];
        // What was in the slot is `slots` contents ago: perhaps nothing, or from before all began anew, which is over.
        const std::size_t taken = (number - begin_.batch) / batches + 1 + wait.ahead;
        if (taken <= slots)
            return;
        const std::size_t runs = a_run_[wait.stage];
        const std::size_t end = (taken - slots) * batches / runs * runs;
        if (end > 0 && end + slots * batches >= (taken - wait.ahead) * batches)
            visit(wait.stage, begin_.batch + end - 1);
    }

    const PlanData& plan_;
    bool any_ = false;
    List<std::size_t> a_run_;      // batches for each of which a stage runs once
    List<std::size_t> every_;      // runs for each of which its slot changes once
    List<std::size_t> first_turn_; // among the turns
    List<std::size_t> a_content_;  // batches for each of which a maker's slot changes once
    List<Turn> turns_;
    std::size_t period_ = 1;
    Begin begin_, former_;
    List<StagePlan> stages_;
    List<PlanWait> waits_;
    PlanData rated_;
};

} // namespace sluice::detail
