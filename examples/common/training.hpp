/// \file
/// Training under one schedule after another: its steps, its time, and what it leaves behind.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <common/bits.hpp>
#include <common/pace.hpp>
#include <common/progress.hpp>
#include <common/report.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/report/advice.hpp>

namespace examples {

/// What training under one schedule gave.
struct Training {
    std::vector<float> losses; ///< one a step, warm-up included
    Pace pace;                 ///< of the timed steps

    [[nodiscard]] double step_seconds() const { return pace.seconds / static_cast<double>(pace.steps); }
};

/// What `run_batches` does before a batch unless it is told otherwise.
struct NothingBefore {
    void operator()(std::size_t /*index*/) const {}
};

/// A source whose `fill_times` `run_batches` looks at has noted so many batches.
inline constexpr int noted_fills = 64;

/// Whether a pipeline's steps are graphs now.
template <class Pipeline>
bool is_graphed(const Pipeline& pipeline) {
    const sluice::Schedule schedule = pipeline.options().schedule;
    return (schedule == sluice::Schedule::automatic ? pipeline.choice().schedule : schedule) ==
           sluice::Schedule::graphed;
}

/// Submits all batches of `source` to `pipeline`, `warmup` of them and then `steps` timed ones, and waits
/// until they are done. Shows how far it is under `title`. `before(index)` is called before each batch is
/// submitted. Returns what the timed ones took. Under Schedule::automatic the clock starts again once it has decided.
template <class Source, class Pipeline, class Before = NothingBefore>
Pace run_batches(Source& source, Pipeline& pipeline, const std::string& title, std::size_t warmup,
                 std::size_t steps, Before before = {}) {
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point begin) {
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    bool trying = false;
    if constexpr (requires { pipeline.choice(); })
        trying = pipeline.options().schedule == sluice::Schedule::automatic;
    Progress progress(title, static_cast<std::int64_t>(warmup + steps));
    Pace pace;
    auto start = Clock::now();
    for (std::size_t index = 0;; ++index) {
        const auto asked = Clock::now();
        auto batch = source.next();
        if (!batch)
            break;
        pace.waiting_seconds += seconds_since(asked);
        bool restart = index == warmup;
        if constexpr (requires { pipeline.choice(); }) {
            if (trying && index >= warmup && pipeline.choice().decided) {
                trying = false;
                restart = true;
            }
        }
        if (restart) {
            pipeline.finish();
            pace = {};
            start = Clock::now();
        }
        before(index);
        const auto submitting = Clock::now();
        const std::int64_t waited = sluice::waited_for_results();
        pipeline.submit(batch);
        pace.submitting_seconds +=
            seconds_since(submitting) - 1e-9 * static_cast<double>(sluice::waited_for_results() - waited);
        ++pace.steps;
        progress.update(static_cast<std::int64_t>(index + 1));
    }
    pipeline.finish();
    pace.seconds = seconds_since(start);
    if constexpr (requires { source.fill_times(); })
        pace.bound = bound_line(pace, source.fill_times(), source.workers(), is_graphed(pipeline));
    if constexpr (requires { pipeline.choice(); }) {
        if (pipeline.options().schedule == sluice::Schedule::automatic)
            pace.choice = sluice::to_sentence(pipeline.choice());
    }
    return pace;
}

/// The report's runs of one training under several schedules, each from the same first weights.
class TrainingRuns {
public:
    /// Adds the run under `schedule`, which left `weights` (tensors with `values`)
    /// behind. Its losses and weights are compared with those of the serial run, if that one came before.
    /// First and last loss are those of single steps.
    template <class Tensors>
    RunResult& add(sluice::Schedule schedule, const Training& training, const Tensors& weights) {
        std::vector<float> results = training.losses;
        for (const auto& tensor : weights)
            results.insert(results.end(), tensor.values.begin(), tensor.values.end());

        RunResult& run = runs_.emplace_back();
        run.schedule = to_string(schedule);
        run.steps_per_second = 1 / training.step_seconds();
        run.step_microseconds = 1e6 * training.step_seconds();
        for (const std::string* note : {&training.pace.choice, &training.pace.bound}) {
            if (!note->empty())
                run.notes.push_back(*note);
        }
        run.loss_first = static_cast<double>(training.losses.front());
        run.loss_last = static_cast<double>(training.losses.back());
        if (serial_results_)
            run.identical_to_serial = same_bits(*serial_results_, results);
        if (schedule == sluice::Schedule::serial) {
            run.identical_to_serial = true;
            serial_results_ = std::move(results);
        }
        return run;
    }

    [[nodiscard]] const std::vector<RunResult>& runs() const { return runs_; }

private:
    std::vector<RunResult> runs_;
    std::optional<std::vector<float>> serial_results_;
};

} // namespace examples
