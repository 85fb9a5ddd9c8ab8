// Bodies of KernelTrace, of cupti.hpp.
#pragma once

#include <sluice/report/detail/cupti_recorder.hpp>

#if SLUICE_HAS_CUPTI

#include <sluice/backend/detail/demangled.hpp>

namespace sluice {

namespace detail::cupti {

/// Calls of a nanosecond or so, of which there are many, and which would only be slowed down.
inline void leave_out_short_calls() {
    if (library().activity_enable_runtime_api == nullptr)
        return;
    for (const CUpti_CallbackId id :
         {CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
          CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
          CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000})
        (void)library().activity_enable_runtime_api(id, 0);
}

/// Libraries such as cuBLAS launch by the driver's functions.
inline void take_in_driver_launches(bool enable) {
    if (library().activity_enable_driver_api == nullptr)
        return;
    for (const CUpti_CallbackId id :
         {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
          CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz})
        (void)library().activity_enable_driver_api(id, enable ? 1 : 0);
}

inline void enable(Recorder& to, CUpti_ActivityKind kind, const char* name) {
    check(library().activity_enable(kind), name);
    to.kinds.push_back(kind);
}

inline void call_back(const Recorder& to, CUpti_CallbackId id, bool enable) {
    check(library().enable_callback(enable ? 1 : 0, to.subscriber, CUPTI_CB_DOMAIN_RESOURCE, id),
          "cuptiEnableCallback");
}

/// Takes CUPTI for this process, and has it say which modules are loaded. `to.control` is held.
inline void subscribe(Recorder& to) {
    if (to.subscriber != nullptr)
        return;
    int devices = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0) {
        (void)cudaGetLastError();
        throw Error(std::string("KernelTrace: there is no CUDA device to record") +
                    (error != cudaSuccess ? std::string(" (") + cudaGetErrorString(error) + ")" : ""));
    }
    check(
        library().subscribe(&to.subscriber, reinterpret_cast<CUpti_CallbackFunc>(&resource_changed), nullptr),
        "cuptiSubscribe");
    call_back(to, CUPTI_CBID_RESOURCE_MODULE_LOADED, true);
}

inline void unsubscribe(Recorder& to) {
    if (to.subscriber != nullptr)
        (void)library().unsubscribe(to.subscriber);
    to.subscriber = nullptr;
}

inline constexpr CUpti_CallbackId graph_callbacks[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                                       CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

/// Lets go of CUPTI; what has been recorded stays. `to.control` is held.
inline void disable(Recorder& to) {
    const RangeListener* ours = &range_listener_of_trace;
    (void)range_listener.compare_exchange_strong(ours, to.other_listener.load());
    for (const CUpti_ActivityKind kind : to.kinds) {
        (void)library().activity_disable(kind);
        if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
            take_in_driver_launches(false);
    }
    to.kinds.clear();
    if (!to.stays_subscribed)
        return unsubscribe(to);
    for (const CUpti_CallbackId id : graph_callbacks)
        (void)library().enable_callback(0, to.subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
}

inline void forget(Recorder& to) {
    {
        const std::lock_guard lock(to.records);
        to.active = false;
        to.data = {};
        to.names.clear();
        to.stage_of_call.clear();
        to.name_of_function.clear();
        to.graph_launches.clear();
    }
    const std::lock_guard lock(to.noting);
    to.stages.clear();
    to.stage_numbers.clear();
    to.stage_of_node.clear();
}

inline void start(Recorder& to, const KernelTraceOptions& options) {
    subscribe(to);
    for (const CUpti_CallbackId id : graph_callbacks)
        call_back(to, id, true);
    check(library().activity_register_callbacks(&buffer_requested, &buffer_completed),
          "cuptiActivityRegisterCallbacks");
    if (options.whole_graphs)
        enable(to, CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "cuptiActivityEnable(GRAPH_TRACE)");
    enable(to, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "cuptiActivityEnable(CONCURRENT_KERNEL)");
    enable(to, CUPTI_ACTIVITY_KIND_MEMCPY, "cuptiActivityEnable(MEMCPY)");
    enable(to, CUPTI_ACTIVITY_KIND_MEMCPY2, "cuptiActivityEnable(MEMCPY2)");
    enable(to, CUPTI_ACTIVITY_KIND_MEMSET, "cuptiActivityEnable(MEMSET)");
    if (options.host_calls) {
        enable(to, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "cuptiActivityEnable(EXTERNAL_CORRELATION)");
        enable(to, CUPTI_ACTIVITY_KIND_RUNTIME, "cuptiActivityEnable(RUNTIME)");
        leave_out_short_calls();
        take_in_driver_launches(true);
    }
    to.other_listener = range_listener.exchange(&range_listener_of_trace);
}

/// Launches of graphs of which there is no activity. Counted by how many there are: CUPTI 13.0 gives launches other
/// numbers than their activities from a process's second recording on.
inline std::size_t silent_graphs(const Recorder& from) {
    std::unordered_set<std::uint32_t> launches;
    bool any = false;
    for (const DeviceActivity& activity : from.data.activities) {
        if (activity.graph_node == 0 && activity.kind != ActivityKind::graph)
            continue;
        any = true;
        launches.insert(activity.correlation);
    }
    if (any && from.sessions > 1 && library().version >= 130000 && library().version < 130101)
        return 0;
    const std::size_t all = from.graph_launches.size();
    return all > launches.size() ? all - launches.size() : 0;
}

/// What was recorded, with times on the steady clock. Both locks are held.
inline DeviceActivities taken(Recorder& from, const Moment& end) {
    from.data.silent_graphs = silent_graphs(from);
    from.data.tensor_cores.reserve(from.data.names.size());
    for (std::string& name : from.data.names) {
        const auto code = from.has_tensor_cores.find(name);
        from.data.tensor_cores.push_back(code == from.has_tensor_cores.end() ? TensorCores::unknown
                                         : code->second                      ? TensorCores::present
                                                                             : TensorCores::absent);
        name = demangled(name);
    }
    from.data.stages = from.stages;
    // Both clocks count nanoseconds; one that was set meanwhile is spread over the time.
    const double begun = static_cast<double>(from.begin.steady) / 1000;
    const double by_cupti = from.time_of(end.cupti);
    const double by_steady = static_cast<double>(end.steady - from.begin.steady) / 1000;
    const double scale = by_cupti > 0 ? by_steady / by_cupti : 1;
    for (DeviceActivity& activity : from.data.activities) {
        activity.begin = begun + scale * activity.begin;
        activity.end = begun + scale * activity.end;
        const std::string& name = from.data.names[activity.name];
        if (activity.kind == ActivityKind::kernel &&
            (name.starts_with("ncclDevKernel") || name.starts_with("ncclKernel")))
            activity.kind = ActivityKind::communication;
        if (activity.graph_node != 0) {
            const auto stage = from.stage_of_node.find(activity.graph_node);
            activity.stage = stage != from.stage_of_node.end() ? stage->second : DeviceActivity::unknown;
        } else if (const auto stage = from.stage_of_call.find(activity.correlation);
                   stage != from.stage_of_call.end()) {
            activity.stage = stage->second;
        }
    }
    for (HostCall& call : from.data.calls) {
        call.begin = begun + scale * call.begin;
        call.end = begun + scale * call.end;
    }
    return std::move(from.data);
}

/// Waits for the devices that were at work. An error of what ran there is left to the code that launched it.
inline void sync_devices(Recorder& of) {
    (void)cudaDeviceSynchronize();
    (void)library().activity_flush_all(0);
    std::unordered_set<int> devices;
    {
        const std::lock_guard lock(of.records);
        for (const DeviceActivity& activity : of.data.activities)
            devices.insert(activity.device);
    }
    int current = 0;
    if (cudaGetDevice(&current) != cudaSuccess)
        return;
    for (const int device : devices) {
        if (device != current && cudaSetDevice(device) == cudaSuccess)
            (void)cudaDeviceSynchronize();
    }
    (void)cudaSetDevice(current);
}

} // namespace detail::cupti

inline std::string KernelTrace::why_unavailable() { return detail::cupti::library().problem; }
inline unsigned KernelTrace::version() { return detail::cupti::library().version; }

inline KernelTrace::KernelTrace(KernelTraceOptions options) {
    namespace parts = detail::cupti;
    if (!available())
        throw Error("KernelTrace: " + why_unavailable());
    parts::Recorder& recorder = parts::recorder();
    const std::lock_guard control(recorder.control);
    if (recorder.active) {
        throw Error("KernelTrace: another trace records in this process, and CUPTI serves one at a time; "
                    "stop it first");
    }
    parts::forget(recorder);
    recorder.begin = parts::moment();
    {
        const std::lock_guard lock(recorder.records);
        recorder.active = true;
    }
    try {
        parts::start(recorder, options);
    } catch (...) {
        parts::disable(recorder);
        parts::forget(recorder);
        throw;
    }
    ++recorder.sessions;
    recording_ = true;
}

inline void KernelTrace::note_tensor_cores() {
    namespace parts = detail::cupti;
    if (!available())
        throw Error("KernelTrace: " + why_unavailable());
    parts::Recorder& recorder = parts::recorder();
    const std::lock_guard control(recorder.control);
    try {
        parts::subscribe(recorder);
    } catch (...) {
        parts::unsubscribe(recorder);
        throw;
    }
    recorder.stays_subscribed = true;
}

inline DeviceActivities KernelTrace::stop() {
    namespace parts = detail::cupti;
    if (!recording_)
        throw Error("KernelTrace::stop: the trace has stopped already");
    recording_ = false;
    parts::Recorder& recorder = parts::recorder();
    const std::lock_guard control(recorder.control);
    parts::sync_devices(recorder);
    const parts::Moment end = parts::moment();
    parts::disable(recorder);
    (void)parts::library().activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    DeviceActivities result;
    {
        const std::lock_guard lock(recorder.records);
        const std::lock_guard noting(recorder.noting);
        result = parts::taken(recorder, end);
    }
    parts::forget(recorder);
    return result;
}

inline KernelTrace::~KernelTrace() {
    namespace parts = detail::cupti;
    if (!recording_)
        return;
    parts::Recorder& recorder = parts::recorder();
    const std::lock_guard control(recorder.control);
    parts::disable(recorder);
    (void)parts::library().activity_flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    parts::forget(recorder);
}

} // namespace sluice

#else

namespace sluice {

inline std::string KernelTrace::why_unavailable() {
#if SLUICE_HAS_CUDA
    return "this program was compiled without CUPTI's headers: expected cupti.h, of CUDA 12.0 or later, in "
           "the toolkit's include or extras/CUPTI/include";
#else
    return "this program was compiled without CUDA, and CUPTI records what CUDA devices do";
#endif
}
inline unsigned KernelTrace::version() { return 0; }

inline KernelTrace::KernelTrace(KernelTraceOptions /*options*/) {
    throw Error("KernelTrace: " + why_unavailable());
}
inline KernelTrace::~KernelTrace() { recording_ = false; }
inline void KernelTrace::note_tensor_cores() { throw Error("KernelTrace: " + why_unavailable()); }
inline DeviceActivities KernelTrace::stop() {
    throw Error("KernelTrace::stop: the trace has stopped already");
}

} // namespace sluice

#endif
