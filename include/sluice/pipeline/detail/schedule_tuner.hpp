/// \file
/// Which schedule is fastest: the order of the trials, and what they measure. Knows nothing of pipelines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace sluice::detail {

/// Tries one way after another on batches as they come. Of each, first some batches that are not measured, until nothing is
/// captured any more; then a short run of batches and a long one, from rest to rest: what filling and emptying the pipeline
/// takes is in both, so that the difference is what the batches between them took. Those within 5 % of the best are
/// measured twice, and the first one within 2 % of the best is chosen.
///
/// The caller counts each batch with `count`. Where that says so, it lets the pipeline come to rest, calls `at_rest`, and
/// runs what comes then under `current`.
class ScheduleTuner {
public:
    explicit ScheduleTuner(const std::vector<ScheduleTrial>& trials) {
        choice_.trials = trials;
        for (std::size_t i = 0; i < trials.size(); ++i)
            to_try_.push_back(i);
        set_current(0);
        if (trials.size() < 2)
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
        return ++counted_ >= length_;
    }
    /// The pipeline has come to rest by itself, and what has been counted is of no use.
    void interrupted() noexcept {
        counted_ = 0;
        if (choice_.batches > most_batches)
            decide();
    }
    /// It has come to rest as it was told. `graphs` counts what the current way has done.
    void at_rest(std::int64_t now, const GraphCounters& graphs) {
        const double taken = static_cast<double>(now - begun_) / 1000;
        const std::size_t batches = std::exchange(counted_, 0);
        switch (phase_) {
        case Phase::warming:
            warmed(taken, batches, graphs);
            break;
        case Phase::brief:
            brief_ = taken;
            phase_ = Phase::lengthy;
            length_ = lengthy_;
            break;
        case Phase::lengthy:
            measured(taken > brief_ ? (taken - brief_) / static_cast<double>(lengthy_ - brief_length_)
                                    : taken / static_cast<double>(lengthy_));
            break;
        }
    }

private:
    enum class Phase : std::uint8_t { warming, brief, lengthy };
    static constexpr std::size_t most_batches = 4096; // then what is known by then decides
    static constexpr std::size_t warm_batches = 16;   // at a time
    static constexpr std::size_t most_warm = 20;      // times
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

    void warmed(double taken, std::size_t batches, const GraphCounters& graphs) {
        ++warm_;
        const bool graphed = trial().schedule == Schedule::graphed;
        if (graphs.changes > 0 || graphs.refusals > 0) {
            trial().refused = true;
            next();
            return;
        }
        const bool settled =
            !graphed || (graphs.captures == seen_.captures && graphs.replays > seen_.replays &&
                         graphs.comparisons == seen_.comparisons);
        seen_ = graphs;
        if (!settled) {
            if (warm_ < most_warm)
                return;
            trial().refused = graphs.replays == 0;
            if (trial().refused) {
                next();
                return;
            }
        }
        step_ = taken / static_cast<double>(batches);
        choose_lengths();
        phase_ = Phase::brief;
        length_ = brief_length_;
    }

    void choose_lengths() noexcept {
        const double wanted = long_enough / (step_ > 1 ? step_ : 1);
        lengthy_ = wanted < 6 ? 6 : wanted > 384 ? 384 : static_cast<std::size_t>(wanted);
        brief_length_ = lengthy_ / 3;
        if (lengthy_ >= 48) { // whole graphs of many steps
            lengthy_ = (lengthy_ + 15) / 16 * 16;
            brief_length_ = 16;
        }
    }

    void measured(double microseconds) {
        double& known = trial().microseconds;
        known = known > 0 ? (known + microseconds) / 2 : microseconds;
        next();
    }

    void next() {
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
    std::vector<std::size_t> to_try_; // indices of trials
    std::size_t tried_ = 0;           // how many of them
    std::size_t at_ = 0;              // the current trial
    bool again_ = false;              // whether the best ones are being measured again
    Phase phase_ = Phase::warming;
    std::size_t warm_ = 0;
    std::size_t counted_ = 0;
    std::size_t length_ = 0;
    std::size_t brief_length_ = 0;
    std::size_t lengthy_ = 0;
    std::int64_t begun_ = 0;
    double brief_ = 0;
    double step_ = 0; // microseconds of a batch, roughly
    GraphCounters seen_;
};

} // namespace sluice::detail
