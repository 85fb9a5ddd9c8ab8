/// \file
/// What devices did, kernel by kernel: activities, and their times by kernel, by stage and by cause.
///
/// `report/cupti.hpp` records them. Nothing here needs CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sluice/report/timeline.hpp>
#include <sluice/report/timeline_report.hpp>

namespace sluice {

/// What a device was at work with.
enum class ActivityKind : std::uint8_t {
    kernel,        ///< a kernel
    copy,          ///< a copy, also between devices
    set,           ///< a fill of memory
    communication, ///< a kernel of NCCL
    graph,         ///< a launch of a whole graph, where its nodes were not recorded; counts as kernels do
};

/// Whether a kernel's code has instructions of Tensor Cores.
enum class TensorCores : std::uint8_t {
    unknown, ///< its code was not seen, or it is no kernel
    absent,  ///< it has none
    present, ///< it has some; whether they ran is not looked at, and what functions that it calls have does not count
};

/// One thing that a device did.
struct DeviceActivity {
    /// Stands for a stage or a batch that is not known.
    static constexpr std::uint32_t unknown = 0xFFFFFFFF;

    double begin = 0; ///< Microseconds on `std::chrono::steady_clock`, since its epoch.
    double end = 0;   ///< Likewise, not before `begin`.

    ActivityKind kind = ActivityKind::kernel; ///< What it was.
    int device = 0;                           ///< Where.
    std::uint32_t stream = 0;                 ///< Which stream, as CUPTI numbers them.
    std::uint32_t correlation = 0;            ///< Which call launched it, as CUPTI numbers them.
    std::uint64_t graph_node = 0;  ///< Which node of a graph, as CUPTI numbers them; 0: of no graph.
    std::uint64_t bytes = 0;       ///< How much was copied or filled.
    std::uint32_t name = 0;        ///< What ran, in `DeviceActivities::names`.
    std::uint32_t stage = unknown; ///< Which stage launched it, in `DeviceActivities::stages`.
    std::uint32_t batch = unknown; ///< Which batch it was for; `assign_to_stages` finds it.
};

/// A stretch of time in which a thread was inside a call of CUDA.
struct HostCall {
    double begin = 0;         ///< As in `DeviceActivity`.
    double end = 0;           ///< Likewise.
    std::uint32_t thread = 0; ///< Which thread, as CUPTI numbers them.
    std::uint32_t name = 0;   ///< Which function, in `DeviceActivities::names`.
};

/// What devices did in some time, in the order in which it became known.
struct DeviceActivities {
    std::vector<DeviceActivity> activities; ///< What was recorded.
    std::vector<HostCall> calls;            ///< Calls of CUDA, where they were recorded.
    std::vector<std::string> names;         ///< Names of kernels, copies and functions.
    std::vector<TensorCores> tensor_cores;  ///< Of each of `names`; those that are missing are unknown.
    std::vector<std::string> stages;        ///< Names of stages.

    std::size_t dropped = 0; ///< Records that were lost, because there was no room for them.
    /// Launches of graphs of which nothing was recorded: graphs that had been instantiated before the recording began.
    std::size_t silent_graphs = 0;
};

/// Gives activities the batch they were for, and the stage where none is known, by `timeline`, that of the pipeline that
/// launched them (`timeline_of`). An activity whose stage is known gets the batch of this stage's span in which its middle
/// lies. One whose stage is not known gets the stage of the same device whose span it lies in: the only such one, or the
/// one that other activities of the same stream have. Ends of spans are taken as exact to `tolerance` microseconds.
/// \throws Error where the timeline does not know its `clock_zero`, for a stage that has no name in `activities`, times that are
/// not finite, and a tolerance below 0.
void assign_to_stages(DeviceActivities& activities, const Timeline& timeline, double tolerance = 20);

/// Adds a row for each stream on which `activities` has kernels, and one for each on which it has copies or fills: "kernels,
/// stream 7" of the unit "GPU 0". Where the timeline has spans already, only what was between its first begin and its last
/// end is added; a timeline without spans and without values of counters begins with the first activity. Take reports of the
/// timeline before: the rows of the stages and those of their kernels would both count.
/// \throws Error where the timeline has spans or values, and does not know its `clock_zero`, and for times that are not finite.
void add_rows(Timeline& timeline, const DeviceActivities& activities);

/// Wall time by cause, in microseconds. Each instant counts once, for the first of the causes in this order that holds then,
/// so that they sum to the wall time. Several devices count as one.
struct TimeByCause {
    double kernel = 0;        ///< A kernel ran.
    double copy = 0;          ///< A copy ran.
    double set = 0;           ///< A fill ran.
    double communication = 0; ///< A kernel of NCCL ran.
    double runtime = 0;       ///< A thread was inside a call of CUDA, and no device worked.
    double source = 0;        ///< A batch was being filled or waited for, and nothing of the above.
    double other = 0;         ///< Nothing of the above.
};

/// All activities of one name, by one stage. Times are in microseconds.
struct KernelTotal {
    std::string name;                         ///< In full.
    std::string stage;                        ///< Empty where it is not known.
    ActivityKind kind = ActivityKind::kernel; ///< What it is.
    std::size_t count = 0;                    ///< How many.
    double total = 0;                         ///< The sum of their durations; what overlaps counts each time.
    double mean = 0;                          ///< `total / count`.
    double share = 0;                         ///< `total` as a share of the wall time; may exceed 1.
    std::uint64_t bytes = 0;                  ///< Of copies and fills, all together.
    TensorCores tensor_cores = TensorCores::unknown; ///< Whether it has instructions of Tensor Cores.
};

/// The activities of a stage. Times are in microseconds and of unions of intervals, shares are parts of the wall time.
struct StageActivity {
    std::string name;           ///< The stage's.
    std::size_t activities = 0; ///< How many.
    double busy = 0;            ///< Time in which at least one ran.
    double share = 0;           ///< The same as a share.
    /// Time from the first begin to the last end of its activities for each batch. That is what `report_of` of a pipeline
    /// notes by events: it has the gaps between kernels in it.
    double at_work = 0;
    double at_work_share = 0; ///< The same as a share.
    /// What the timeline has of the stage by events, as `RowReport::share`; 0 without a timeline.
    double noted_share = 0;
};

/// Activities in numbers. Times are in microseconds.
struct ActivityReport {
    std::string title;     ///< As asked for.
    double begin = 0;      ///< Where it begins, on the steady clock.
    double end = 0;        ///< Where it ends.
    double wall = 0;       ///< `end - begin`.
    double slowdown = 0;   ///< As asked for.
    std::size_t count = 0; ///< Activities in this time.
    DeviceShares device;   ///< What the devices did: kernels compute, copies and fills copy.
    double busy_share = 0; ///< Share of the wall time in which a device worked.
    double overlap = 0;    ///< Share in which activities of at least two stages ran.
    /// Share in which at least two stages were at work, see `StageActivity::at_work`.
    double at_work_overlap = 0;
    /// The same by the timeline's events, as `TimelineReport::overlap`; 0 without a timeline.
    double noted_overlap = 0;
    TimeByCause causes; ///< What the time went into.
    /// In the order of `DeviceActivities::stages`; those without activities are left out.
    std::vector<StageActivity> stages;
    /// By stage, those of no known stage last, and of each with the longest total first.
    std::vector<KernelTotal> kernels;
    /// Of the kernels' durations, all together, the share of those that have instructions of Tensor Cores.
    double tensor_core_share = 0;
    double tensor_core_unknown =
        0;                   ///< The share of those of which that is not known; 1 where there are no kernels.
    std::size_t dropped = 0; ///< As in `DeviceActivities`.
    std::size_t silent_graphs = 0; ///< As in `DeviceActivities`.
};

/// What `report_of` is to look at.
struct ActivityReportOptions {
    std::string title = {}; ///< Shown above.
    /// From the first begin to the last end of this timeline's spans; its spans of kind `source` and `wait` are the cause
    /// `source`, and of those of a pipeline's `timeline_of` only what the submitting thread waited for the source, or
    /// filled itself. Null: from the first begin to the last end of the activities. It must know its `clock_zero`.
    const Timeline* timeline = nullptr;
    /// How many times as long a step took while this was recorded as without, as measured. 0: not known. It is shown, and
    /// changes no number.
    double slowdown = 0;
};

/// Works out the numbers of `activities`, in O(n log n). What reaches beyond the time that is looked at is cut off there.
/// \throws Error for a timeline that does not know its `clock_zero`, and a slowdown below 0 or times that are not finite.
ActivityReport report_of(const DeviceActivities& activities, const ActivityReportOptions& options = {});

/// The report as text in UTF-8, for a terminal: a head, the causes, the stages, and the `most` kernels of each stage that
/// took most. No line is wider than 80 columns. Of a name, what a compiler puts round it, such as its arguments, is left out.
std::string to_table(const ActivityReport& report, std::size_t most = 8);

/// The report as a JSON object (RFC 8259) on one line, with all kernels. Its keys are the names of the members, times with
/// `_us` behind them. What was not asked for, as `slowdown`, is 0.
std::string to_json(const ActivityReport& report);

} // namespace sluice

#include <sluice/report/detail/device_activity.inl>
#include <sluice/report/detail/device_activity_report.inl>
#include <sluice/report/detail/device_activity_text.inl>
