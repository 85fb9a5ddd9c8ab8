/// \file
/// What the trainings of the examples share: their loop, and the comparison of their runs.
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <common/training.hpp>
#include <common/workers.hpp>

#include "support/doctest.hpp"

namespace examples_training {

using namespace examples;

namespace {

struct Tensor {
    std::vector<float> values;
};

struct Batch {
    std::size_t number;
    bool any;
    explicit operator bool() const { return any; }
};

/// Gives so many batches.
struct Batches {
    std::size_t count;
    std::size_t given = 0;
    Batch next() { return given < count ? Batch{given++, true} : Batch{0, false}; }
};

/// Writes down what it is told.
struct Pipeline {
    std::string calls;
    void submit(const Batch& batch) { calls += std::to_string(batch.number); }
    void finish() { calls += "f"; }
};

std::string calls_with(std::size_t warmup, std::size_t steps) {
    Batches source{warmup + steps};
    Pipeline pipeline;
    const Pace pace = run_batches(source, pipeline, "", warmup, steps);
    CHECK(pace.steps == steps);
    CHECK(pace.seconds >= pace.waiting_seconds + pace.submitting_seconds);
    return pipeline.calls;
}

} // namespace

TEST_CASE("bits are the same for the same NaN, and not for zeros of two signs") {
    CHECK(same_bits({}, {}));
    CHECK(same_bits({1.0f, std::nanf("")}, {1.0f, std::nanf("")}));
    CHECK_FALSE(same_bits({0.0f}, {-0.0f}));
    CHECK_FALSE(same_bits({1.0f}, {1.0f, 1.0f}));
    CHECK_FALSE(same_bits({1.0f}, {std::nextafter(1.0f, 2.0f)}));
}

TEST_CASE("workers are half of the threads that are left, 1 to 8") {
    CHECK(workers_among(16, 1) == 7);
    CHECK(workers_among(16, 5) == 5);
    CHECK(workers_among(128, 1) == 8);
    CHECK(workers_among(128, 1, 4) == 4);
    CHECK(workers_among(4, 1) == 1);
    CHECK(workers_among(2, 5) == 1);
    CHECK(workers_among(0, 1) == 1); // not known
    CHECK(workers_for_machine(1) >= 1);
    CHECK(workers_for_machine(1) <= 8);
    CHECK(other_threads(true, 4) == 5);
    CHECK(other_threads(false, 4) == 1);
}

TEST_CASE("the clock starts when the warm-up is done") {
    CHECK(calls_with(2, 3) == "01f234f");
    CHECK(calls_with(0, 1) == "f0f");
}

TEST_CASE("a run says so where its source or its launches bound it, and not where a stage does") {
    const std::vector<sluice::FillTime> fills{{.begin = 0, .end = 480}, {.begin = 500, .end = 980}};
    const Pace waits{.steps = 10, .seconds = 4.9e-3, .waiting_seconds = 4e-3, .submitting_seconds = 0.5e-3};
    CHECK(bound_line(waits, fills, 1, false) ==
          "the source bounds this: one worker fills a batch in 480 us, and a step takes 490; "
          "up to 6 workers help, see --workers");
    CHECK(bound_line(waits, fills, 0, false)
              .starts_with("the source bounds this: the thread that submits fills a batch in 480 us"));
    // Four workers wait for slots, since a stage does not give them back.
    CHECK(bound_line(waits, fills, 4, false).empty());
    const Pace submits{
        .steps = 10, .seconds = 4.9e-3, .waiting_seconds = 0.1e-3, .submitting_seconds = 4.5e-3};
    CHECK(bound_line(submits, fills, 8, false) ==
          "launches bound this: 450 of a step's 490 us are spent in submit; graphs spare most of them");
    CHECK(bound_line({}, fills, 1, false).empty());
}

TEST_CASE("what is to come before a batch comes when the clock runs, and before it is submitted") {
    Batches source{3};
    Pipeline pipeline;
    const auto before = [&](std::size_t index) { pipeline.calls += "b" + std::to_string(index); };
    CHECK(run_batches(source, pipeline, "", 1, 2, before).steps == 2);
    CHECK(pipeline.calls == "b00fb11b22f");
}

TEST_CASE("runs are compared with the serial one, losses and weights") {
    Training training{{4.0f, 3.0f, 2.0f}, {.steps = 2, .seconds = 0.5}};
    training.pace.bound = "the source bounds this";
    const std::vector<Tensor> weights{{{1.0f}}, {{2.0f, 3.0f}}};
    TrainingRuns runs;
    CHECK_FALSE(runs.add(sluice::Schedule::graphed, training, weights).identical_to_serial);
    const RunResult serial = runs.add(sluice::Schedule::serial, training, weights);
    CHECK(serial.schedule == "serial");
    CHECK(serial.steps_per_second == 4.0);
    CHECK(serial.step_microseconds == 250'000.0);
    CHECK(serial.loss_first == 4.0);
    CHECK(serial.loss_last == 2.0);
    CHECK(serial.identical_to_serial == true);
    CHECK(runs.add(sluice::Schedule::overlapped, {training.losses, {.steps = 2, .seconds = 0.25}}, weights)
              .identical_to_serial == true);
    const Training other{{4.0f, 3.5f, 2.0f}, {.steps = 2, .seconds = 0.5}};
    CHECK(runs.add(sluice::Schedule::overlapped, other, weights).identical_to_serial == false);
    const std::vector<Tensor> others{{{1.0f}}, {{2.0f, 3.5f}}};
    CHECK(runs.add(sluice::Schedule::graphed, training, others).identical_to_serial == false);
    CHECK(runs.runs().size() == 5);
}

} // namespace examples_training
