/// \file
/// Recording what devices do, kernel by kernel, with CUPTI, the library that profilers of CUDA rest on.
///
/// CUPTI comes with the toolkit. It is looked for at run time and never required: a program that includes this links nothing
/// of it, and runs without. Compile with its headers in reach (`cupti.h`, in the toolkit's `include` or
/// `extras/CUPTI/include`). Not part of `report.hpp`: the headers cost every file that includes them a tenth of a second.
#pragma once

#include <string>

#include <sluice/backend/config.hpp>
#include <sluice/report/device_activity.hpp>

namespace sluice {

/// What a `KernelTrace` records.
struct KernelTraceOptions {
    /// Calls of CUDA on the host, for the cause `runtime`, and for the stages of work that is not in graphs. Without it
    /// recording costs the host less; stages are then found by `assign_to_stages`.
    bool host_calls = true;
    /// A launch of a graph as one activity, in the place of its kernels and copies. It costs far less where graphs have many
    /// short nodes.
    bool whole_graphs = false;
};

/// Records the kernels, copies and fills of all devices, from when it is made until `stop`.
///
/// \code
/// sluice::KernelTrace trace; // before the pipeline is made: see below
/// sluice::TwoStreamPipeline pipeline{encode, train, make_features, {.timed_batches = 24}};
/// for (const auto& batch : source) pipeline.submit(batch);
/// pipeline.finish();
/// sluice::DeviceActivities activities = trace.stop();
/// const sluice::Timeline timeline = sluice::timeline_of(pipeline);
/// assign_to_stages(activities, timeline);
/// std::puts(to_table(report_of(activities, {.timeline = &timeline})).c_str());
/// \endcode
///
/// - **Graphs.** Each node of a graph is recorded only if the graph was instantiated while a trace recorded; so make the trace
///   before what captures graphs. Launches of which nothing is recorded are counted in `DeviceActivities::silent_graphs`.
/// - **Stages.** What a stage of a pipeline enqueues, or has captured, carries its name, if the trace was there then.
/// - **Its slowdown.** Each launch and each node costs more while it records, and some of that stays until the program ends.
///   Measure a run first without a trace, then one with, and give the ratio as `ActivityReportOptions::slowdown`. Shares of
///   work that is short are the most distorted.
/// - **Programmatic launches** begin before the kernel ahead of them on the same stream has ended: kernels of one stream may
///   overlap, and shares count that time once.
/// - **Conditional nodes.** CUPTI of some CUDA 12 releases is known to crash now and then when a graph with conditional nodes is
///   instantiated. The bodies' kernels are recorded each time they run.
///
/// One at a time in a process, and none under Nsight Systems or another profiler that uses CUPTI itself.
class KernelTrace {
public:
    /// Begins to record. \throws Error in one sentence where CUPTI is not there or refuses, or another trace records.
    explicit KernelTrace(KernelTraceOptions options = {});
    KernelTrace(const KernelTrace&) = delete;            ///< Cannot be copied.
    KernelTrace& operator=(const KernelTrace&) = delete; ///< Cannot be assigned.
    /// Stops, and forgets what was recorded.
    ~KernelTrace();

    /// Waits for the devices that have been at work, stops, and gives what was recorded, with times on the steady clock. Call it
    /// once the work is over, as after `Pipeline::finish`. \throws Error where it has stopped before.
    DeviceActivities stop();

    /// Notes of each kernel that is loaded from now on whether it has instructions of Tensor Cores, until the program ends. A
    /// trace does so by itself while it records, but kernels are loaded before they first run: call this before the program's
    /// first kernel, so that `DeviceActivities::tensor_cores` knows all. Costs nothing later, and keeps other profilers
    /// that use CUPTI out of this process. \throws Error as the constructor does.
    static void note_tensor_cores();

    /// Whether CUPTI is there. A driver that refuses it shows only once a trace is made.
    static bool available() { return why_unavailable().empty(); }
    /// One sentence that says what is missing; empty if nothing is.
    static std::string why_unavailable();
    /// The version of the library that was found, as `cuptiGetVersion` gives it; 0: none.
    static unsigned version();

private:
    bool recording_ = false;
};

} // namespace sluice

#include <sluice/report/detail/cupti.inl>
