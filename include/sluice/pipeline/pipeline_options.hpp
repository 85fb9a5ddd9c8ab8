/// \file
/// How a pipeline runs.
#pragma once

#include <optional>

#include <sluice/graph/graph_capture.hpp>
#include <sluice/pipeline/schedule.hpp>

namespace sluice {

/// How a pipeline runs.
struct PipelineOptions {
    /// How the stages run.
    Schedule schedule = Schedule::overlapped;
    /// Slots of each stage's output, at least 1. With 2, a stage fills one while the next one
    /// empties the other; more let stages of uneven duration run further ahead.
    int slots = 2;
    /// How many batches may be under way, that is submitted and not through all stages: `submit` waits until there is room,
    /// `try_submit` does not. Few keep a result young where batches come faster than the stages take them. Up to 63 are
    /// counted one by one; of more, `submit` looks at the device each time a quarter of them has been submitted. A stage
    /// whose work waits for what the caller does after a later `submit` needs room for all batches until then. Graphs of
    /// steps hold no more than that, and of 1 their stages work one after another. 0: 128, looked at behind each 64, but as many as are
    /// submitted while a stage waits for a `Semaphore` that no stream will signal.
    int in_flight = 0;
    /// True: waits for each stage, so that a fault of its work on the device is reported with its name and
    /// batch. For looking for a fault: nothing overlaps then.
    bool launch_blocking = false;
    /// How steps are captured and kept under `Schedule::graphed`. What it says of graphs, and the next two, has no effect under the other
    /// schedules, so that the schedule is the only switch; values out of range are refused under all of them.
    GraphOptions graphs{.capacity = 256};
    /// Under `Schedule::graphed`, the batches whose work is one graph. More cost the host less and let uneven stages run
    /// ahead of each other, but a batch waits until as many are there, or for `flush`. What a batch of the caller's own refers
    /// to is read no earlier than that: it must stay as it is until `BatchRead` says so, also while nothing has been
    /// enqueued yet. 0: one, and up to 16 for batches of a `Source` as long as more of them are ready. A graph takes at most
    /// half of a source's slots, and has no more steps than batches may be in flight. Without effect where each stage has graphs of its own.
    int steps_per_graph = 0;
    /// Under `Schedule::graphed`, true: each stage's work on one batch is a graph of its own, launched on the stage's
    /// stream between the same waits as under `overlapped`. A launch a stage instead of one for all, but no step waits
    /// for the slowest stage of the step before: better where stages take some 50 microseconds or more. It is so anyway
    /// where a stage opts out or is a CPU stage, and where a stage has lanes and `steps_per_graph` is 0: graphs of one step would
    /// have them work one after another; and from the first loop over `run` on that has fewer slots than a step has batches, which
    /// are the stages in a chain.
    bool graph_each_stage = false;
    /// Of the last so many batches, notes when each stage began and ended, for `stage_times` and `report_of`, by two events
    /// a stage and batch. Where calls of `submit` follow each other in less than 400 us, so that notes would slow them down,
    /// only one lot of so many batches in eight is noted from the fifth on: the noted ones need not be the last then. 0:
    /// notes nothing, and costs nothing.
    ///
    /// The latency of a batch is from its `submit` to the end of the last stage that ran for it; or from when it came into being,
    /// where a function `batch_time(const Batch&)` beside the batch's type gives a time point of `std::chrono::steady_clock`, such
    /// as the sensor's.
    int timed_batches = 0;
    /// Whether races are looked for, see backend/checked.hpp, and under `Schedule::graphed` work that has changed under its
    /// graph. Without a value: where the backend is checked, as it is in a program compiled with `-DSLUICE_CHECKED=1`. True:
    /// it must be, or the constructor throws. False: what this pipeline's stages read and write is not looked at; its waits
    /// are, so that other pipelines' work is judged rightly.
    std::optional<bool> checked = std::nullopt;
};

} // namespace sluice
