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
#include <common/progress.hpp>
#include <common/report.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace examples {

/// What training under one schedule gave.
struct Training {
    std::vector<float> losses; ///< one a step, warm-up included
    double seconds = 0;        ///< of the timed steps
};

/// What `run_batches` does before a batch unless it is told otherwise.
struct NothingBefore {
    void operator()(std::size_t /*index*/) const {}
};

/// Submits all batches of `source` to `pipeline`, `warmup` of them and then `steps` timed ones, and waits
/// until they are done. Shows how far it is under `title`. `before(index)` is called before each batch is
/// submitted. Returns the seconds that the timed ones took.
template <class Source, class Pipeline, class Before = NothingBefore>
double run_batches(Source& source, Pipeline& pipeline, const std::string& title, std::size_t warmup,
                   std::size_t steps, Before before = {}) {
    using Clock = std::chrono::steady_clock;
    Progress progress(title, static_cast<std::int64_t>(warmup + steps));
    auto start = Clock::now();
    for (auto& batch : source) {
        if (batch.index() == warmup) {
            pipeline.finish();
            start = Clock::now();
        }
        before(batch.index());
        pipeline.submit(batch);
        progress.update(static_cast<std::int64_t>(batch.index() + 1));
    }
    pipeline.finish();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The report's runs of one training under several schedules, each from the same first weights.
class TrainingRuns {
public:
    /// Adds the run of `steps` timed steps under `schedule`, which left `weights` (tensors with `values`)
    /// behind. Its losses and weights are compared with those of the serial run, if that one came before.
    /// First and last loss are those of single steps.
    template <class Tensors>
    RunResult& add(sluice::Schedule schedule, const Training& training, std::size_t steps,
                   const Tensors& weights) {
        std::vector<float> results = training.losses;
        for (const auto& tensor : weights)
            results.insert(results.end(), tensor.values.begin(), tensor.values.end());

        RunResult& run = runs_.emplace_back();
        run.schedule = to_string(schedule);
        run.steps_per_second = static_cast<double>(steps) / training.seconds;
        run.step_microseconds = 1e6 * training.seconds / static_cast<double>(steps);
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
