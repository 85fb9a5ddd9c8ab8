/// \file
/// A pipeline described, before it runs: its stages and where each runs, who reads what and waits for whom, slots and bounds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/pipeline/any_pipeline.hpp>
#include <sluice/pipeline/pipeline.hpp>
#include <sluice/pipeline/schedule.hpp>
#include <sluice/report/pipeline_report.hpp>

namespace sluice {

/// What a stage's work on a batch comes after.
struct StageWait {
    std::size_t stage = 0; ///< The work of this stage, by number,
    bool former = false;   ///< on the same batch, or, true, on the batch that was in the same slot before,
    std::size_t ahead = 0; ///< or so many batches behind that one, for which the slot is taken as well.
};

/// A stage of a pipeline.
struct StageDescription {
    std::string name;      ///< As given.
    std::string unit;      ///< "GPU 0" or "host 0"; "CPU" of a stage that runs on threads of its own.
    bool is_cpu = false;   ///< Whether its callable takes no stream.
    std::size_t lanes = 1; ///< Batches that it works on at the same time.
    std::vector<std::size_t>
        streams{};                ///< One a lane; equal numbers are one stream. None of a stage on threads.
    bool external_stream = false; ///< Whether it was given a stream of the caller's.
    int priority = 0;             ///< As given.
    int multiprocessors = 0;      ///< That it has for itself; 0: none.
    bool graphed = true;          ///< Whether its work is captured where the schedule has graphs.

    bool reads_batch = false;         ///< Whether it takes the batch.
    std::vector<std::size_t> reads{}; ///< The stages whose outputs it takes.
    std::size_t window = 1;           ///< The most batches of which it takes what was made.
    std::size_t batches_a_run = 1;    ///< It runs once for so many batches.
    std::size_t every = 1;            ///< Its output is made of so many runs.
    bool in_place = false; ///< Whether its output is what it takes, changed: it has no slots of its own.
    /// But for those that other waits imply. Under `overlapped` they are events and semaphores, under `graphed` edges of
    /// graphs as well, and under `serial` the order of one stream.
    std::vector<StageWait> waits{};

    bool has_output = false;    ///< Whether it makes something.
    std::size_t slot_bytes = 0; ///< A slot's own size in host memory, without what it owns elsewhere.
    std::size_t device_bytes =
        0; ///< What the slots' maker allocated as `DeviceBuffer`s, for all slots of the stage
    std::size_t pinned_bytes = 0; ///< and as `PinnedBuffer`s. In stream order, or by other means: not known.
};

/// What a pipeline's graphs hold.
enum class GraphedWork {
    none,   ///< There are none.
    stages, ///< Each the work of one stage on a batch.
    steps,  ///< Each the work of all stages on one batch or more.
};

/// A pipeline, as `describe` returns it.
struct PipelineDescription {
    std::string backend;                      ///< Its name.
    Schedule schedule = Schedule::overlapped; ///< As given.
    GraphedWork graphs = GraphedWork::none;   ///< Of `automatic` none, since it has not been chosen.
    int steps_per_graph = 0;                  ///< As given; 0: as many as is good.
    std::size_t slots = 0;     ///< Of each stage that has an output, with those that windows take.
    std::size_t in_flight = 0; ///< As many batches may be under way.
    std::vector<StageDescription> stages{}; ///< In their order.
};

/// Describes a `Pipeline`, a `TwoStreamPipeline` or an `AnyPipeline`, at any time, also before the first `submit`, and
/// nothing is waited for. It keeps nothing of the pipeline.
/// @{
template <class StageList, class SlotList>
PipelineDescription describe(const Pipeline<StageList, SlotList>& pipeline);
template <class Batch, Backend B>
PipelineDescription describe(const AnyPipeline<Batch, B>& pipeline);
/// @}

/// The description as a JSON object (RFC 8259) on one line. Its keys are the names of the members, and `waits` has objects
/// like `{"stage":0,"former":true,"ahead":0}`. Stages are numbers. Bytes of names that are not UTF-8 become U+FFFD.
std::string to_json(const PipelineDescription& description);

/// The description in Graphviz' language, for `dot -Tsvg`: a box for each stage, an arrow from who makes something to each
/// who reads it, and a dashed one to a stage from each that it waits for because of the batch before.
std::string to_dot(const PipelineDescription& description);

} // namespace sluice

#include <sluice/report/detail/description.inl>
