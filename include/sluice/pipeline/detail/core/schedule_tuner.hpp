// Which schedule is fastest: the order of the trials, and what they measure. Knows nothing of pipelines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sluice/backend/detail/list.hpp>
#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace sluice::detail {

/// Tries one way after another on batches as they come. Of each, first some batches that are not measured, until nothing is
/// captured any more; then a short run of batches and a long one, from rest to rest: what filling and emptying the pipeline
/// takes is in both, so that the difference is what the batches between them took. Short batches have three runs of either
/// kind, in turns, and the middle times count, so that a pause of the thread that submits spoils none. Those within 5 % of the
/// best are measured twice, and the first one within 2 % of the best is chosen.
///
/// A run in which a graph was captured, or compared with another capture, shows a start and not the pace that follows: it does
/// not count and is run again. Some graphs are met late, such as those of a source's other slots.
///
/// The caller counts each batch with `count`. Where that says so, it lets the pipeline come to rest, calls `at_rest`, and
/// runs what comes then under `current`.
class ScheduleTuner {
public:
    explicit ScheduleTuner(std::vector<ScheduleTrial> trials) {
        choice_.trials = std::move(trials);
        for (std::size_t i = 0; i < choice_.trials.size(); ++i)
            to_try_.push_back(i);
        set_current(0);
        if (choice_.trials.size() < 2)
            choice_.decided = true;
    }

    const ScheduleChoice& choice() const noexcept { return choice_; }
    /// What batches run under now.
    const ScheduleTrial& current() const noexcept { return choice_.trials[at_]; }

    /// A batch has been submitted, which began at the time `begun`, in nanoseconds. Whether the pipeline is to come to rest.
    bool count(std::int64_t begun) noexcept {
        if (counted_ == 0)
            begun_ = begun;
        ++choice_.batches;
        return ++counted_ >= length_ || given_up_;
    }
    /// The pipeline has come to rest by itself, or is not to wait for it. What has been counted is of no use.
    void interrupted() noexcept {
        counted_ = 0;
        given_up_ = choice_.batches > most_batches;
    }
    /// Whether what is known by now decides, at the next rest.
    bool given_up() const noexcept { return given_up_; }
    /// It has come to rest as it was told. `graphs` counts what the current way has done, and `refusal` says why not, if it has
    /// not replayed its work, or not the right one.
    void at_rest(std::int64_t now, const GraphCounters& graphs, std::string refusal = {}) {
        if (given_up_) {
            decide();
            return;
        }
        const double taken = static_cast<double>(now - begun_) / 1000;
        const std::size_t batches = std::exchange(counted_, 0);
        const GraphCounters before = std::exchange(seen_, graphs);
        const bool graphed = trial().schedule == Schedule::graphed;
        // What a first capture alone had is nothing: it may be what stood on the stack, in an argument's padding.
        if (graphed && (graphs.later_changes > 0 || graphs.refusals > 0)) {
            trial().microseconds = 0;
            rule_out(std::move(refusal));
            return;
        }
        const bool steady =
            !graphed || (graphs.captures == before.captures && graphs.comparisons == before.comparisons);
        if (phase_ == Phase::warming)
            warmed(taken, batches, steady && (!graphed || graphs.replays > before.replays),
                   std::move(refusal));
        else if (steady || unsteady_ == most_unsteady)
            ran(taken);
        else
            ++unsteady_;
    }

private:
    enum class Phase : std::uint8_t { warming, brief, lengthy };
    static constexpr std::size_t most_batches = 4096; // then what is known by then decides
    static constexpr std::size_t warm_batches = 16;   // at a time
    static constexpr std::size_t most_warm = 20;      // times
    static constexpr std::size_t most_runs = 3;       // of either kind, each time that a way is measured
    static constexpr std::size_t most_unsteady = 4;   // runs that do not count, likewise; then they do
    static constexpr double long_enough = 15'000;     // microseconds that are measured
    static constexpr double too_long_for_graphs =
        20'000; // microseconds of a batch: launches are nothing beside it
    static constexpr double close = 1.05;
    static constexpr double as_good = 1.02;

    ScheduleTrial& trial() noexcept { return choice_.trials[at_]; }

    void set_current(std::size_t index) noexcept {
        at_ = index;
        choice_.schedule = trial().schedule;
        choice_.graph_each_stage = trial().graph_each_stage;
        phase_ = Phase::warming;
        warm_ = 0;
        length_ = step_ <= 0 ? 4 : step_ > long_enough ? 2 : warm_batches;
        seen_ = {};
    }

    void rule_out(std::string reason) {
        trial().refused = true;
        trial().reason = std::move(reason);
        next();
    }
    void warmed(double taken, std::size_t batches, bool settled, std::string refusal) {
        if (!settled && ++warm_ < most_warm)
            return;
        if (trial().schedule == Schedule::graphed && seen_.replays == 0) {
            rule_out(refusal.empty() ? "no batch's work came again" : std::move(refusal));
            return;
        }
        step_ = taken / static_cast<double>(batches);
        choose_lengths();
        ran_ = unsteady_ = 0;
        phase_ = Phase::brief;
        length_ = brief_length_;
    }

    void choose_lengths() noexcept {
        const double wanted = long_enough / (step_ > 1 ? step_ : 1);
        const std::size_t all = wanted < 6 ? 6 : wanted > 384 ? 384 : static_cast<std::size_t>(wanted);
        runs_ = all < 12 ? 1 : most_runs;
        if (all < 48) {
            brief_length_ = all / (runs_ * 3);
            brief_length_ = brief_length_ < 2 ? 2 : brief_length_;
            lengthy_ = runs_ > 1 ? all / runs_ + brief_length_ : all;
        } else { // graphs of up to 16 steps, whole ones in either run
            brief_length_ = 16;
            lengthy_ = 16 + all / runs_ / 16 * 16;
        }
    }

    // One run is over, and counts.
    void ran(double taken) {
        if (phase_ == Phase::brief) {
            brief_[ran_] = taken;
            phase_ = Phase::lengthy;
            length_ = lengthy_;
            return;
        }
        long_[ran_] = taken;
        phase_ = Phase::brief;
        length_ = brief_length_;
        if (++ran_ < runs_)
            return;
        const double brief = middle(brief_), all = middle(long_);
        measured(all > brief ? (all - brief) / static_cast<double>(lengthy_ - brief_length_)
                             : all / static_cast<double>(lengthy_));
    }
    using Times = std::array<double, most_runs>;
    double middle(const Times& times) const noexcept {
        if (runs_ < most_runs)
            return times[0];
        const auto [a, b, c] = times;
        const double least = a < b ? a : b, most = a < b ? b : a;
        return c < least ? least : c > most ? most : c;
    }

    void measured(double microseconds) {
        double& known = trial().microseconds;
        known = known > 0 ? (known + microseconds) / 2 : microseconds;
        next();
    }

    void next() {
        if (choice_.batches > most_batches) {
            decide();
            return;
        }
        ++tried_;
        while (tried_ < to_try_.size() && skipped(choice_.trials[to_try_[tried_]]))
            ++tried_;
        if (tried_ < to_try_.size()) {
            set_current(to_try_[tried_]);
            return;
        }
        if (!again_) {
            again_ = true;
            const double best = choice_.trials[best_trial()].microseconds;
            to_try_.clear();
            for (std::size_t i = 0; i < choice_.trials.size(); ++i) {
                const ScheduleTrial& one = choice_.trials[i];
                if (one.microseconds > 0 && one.microseconds <= close * best)
                    to_try_.push_back(i);
            }
            if (to_try_.size() > 1) {
                tried_ = 0;
                set_current(to_try_[0]);
                return;
            }
        }
        decide();
    }
    bool skipped(const ScheduleTrial& one) const noexcept {
        return one.schedule == Schedule::graphed && step_ > too_long_for_graphs;
    }
    std::size_t best_trial() const noexcept {
        std::size_t best = 0;
        for (std::size_t i = 1; i < choice_.trials.size(); ++i) {
            const double time = choice_.trials[i].microseconds;
            const double least = choice_.trials[best].microseconds;
            if (time > 0 && (least <= 0 || time < least))
                best = i;
        }
        return best;
    }
    // The first, which is the simplest, of those within 2 % of the best.
    void decide() noexcept {
        std::size_t chosen = best_trial();
        const double enough = as_good * trial_at(chosen).microseconds;
        for (std::size_t i = 0; i < chosen; ++i) {
            if (trial_at(i).microseconds > 0 && trial_at(i).microseconds <= enough) {
                chosen = i;
                break;
            }
        }
        set_current(chosen);
        choice_.decided = true;
    }
    const ScheduleTrial& trial_at(std::size_t index) const noexcept { return choice_.trials[index]; }

    ScheduleChoice choice_;
    List<std::size_t> to_try_; // indices of trials
    std::size_t tried_ = 0;    // how many of them
    std::size_t at_ = 0;       // the current trial
    bool given_up_ = false;    // whether most_batches have come with too few of them timed
    bool again_ = false;       // whether the best ones are being measured again
    Phase phase_ = Phase::warming;
    std::size_t warm_ = 0;
    std::size_t counted_ = 0;
    std::size_t length_ = 0;
    std::size_t brief_length_ = 0;
    std::size_t lengthy_ = 0;
    std::int64_t begun_ = 0;
    double step_ = 0;          // microseconds of a batch, roughly
    std::size_t runs_ = 1;     // of either kind that are to count,
    std::size_t ran_ = 0;      // and pairs of them that do by now
    std::size_t unsteady_ = 0; // runs that did not count
    Times brief_{}, long_{};   // what the runs took, in microseconds
    GraphCounters seen_;       // at the last rest
};

} // namespace sluice::detail
