/// \file
/// How busy a device's SMs, Tensor Cores and memory were: samples of its counters, and their means by stage.
///
/// `report/cupti_counters.hpp` takes them. Nothing here needs CUDA.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sluice/report/device_activity.hpp>

namespace sluice {

/// Means of counters over a short time. All of them are shares of what the device can keep up, from 0 to 1.
struct CounterSample {
    double begin = 0;        ///< Microseconds on `std::chrono::steady_clock`, since its epoch.
    double end = 0;          ///< Likewise.
    double sm_active = 0;    ///< Cycles in which an SM had a warp, averaged over the SMs.
    double tensor_cores = 0; ///< Cycles in which its Tensor Cores were active, likewise.
    double memory = 0;       ///< Throughput of the device's memory, reads and writes.
};

/// Samples of one device, in the order of time.
struct DeviceCounters {
    int device = 0;                     ///< Which.
    std::vector<CounterSample> samples; ///< What was sampled.
    bool overflowed = false;            ///< Whether samples were lost, because there was no room for them.
    /// How far the samples' times may be off, in microseconds.
    double uncertainty = 0;
};

/// Means of counters over some time.
struct CounterMeans {
    std::string stage;       ///< Whose; empty for all of the time.
    double time = 0;         ///< Microseconds that are averaged over.
    double sm_active = 0;    ///< As in `CounterSample`; so are the next two.
    double tensor_cores = 0; ///< See above.
    double memory = 0;       ///< See above.
};

/// Means of counters, as `counters_of` works them out.
struct DeviceCounterReport {
    CounterMeans all; ///< Over all of the time, with the gaps in which nothing ran.
    /// Over the time in which kernels and copies of this stage ran, and of no other one: counters do not say whose work they
    /// count. Stages that never ran alone are left out.
    std::vector<CounterMeans> stages;
    bool overflowed = false; ///< As in `DeviceCounters`.
    double uncertainty = 0;  ///< As in `DeviceCounters`.
};

/// Averages `counters`, weighted by time, over the time from `begin` to `end` on the steady clock, such as those of an
/// `ActivityReport`; over all samples where `end` is not after `begin`. `activities`, of the same time, say when which stage
/// ran.
DeviceCounterReport counters_of(const DeviceCounters& counters, const DeviceActivities& activities,
                                double begin = 0, double end = 0);

/// The report as text in UTF-8, for a terminal, with a line for each stage. No line is wider than 80 columns.
std::string to_table(const DeviceCounterReport& report);

} // namespace sluice

#include <sluice/report/detail/device_counters.inl>
