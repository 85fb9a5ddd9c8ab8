// What CUPTI hands over, kept until a trace stops.
#pragma once

#include <sluice/report/detail/cupti_library.hpp>

#if SLUICE_HAS_CUPTI
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/pipeline/detail/core/range.hpp>
#include <sluice/report/detail/kernel_code.hpp>
#include <sluice/report/device_activity.hpp>

namespace sluice::detail::cupti {

/// The same moment on both clocks, in nanoseconds.
struct Moment {
    std::uint64_t cupti = 0;
    std::int64_t steady = 0;
};

/// Of several looks at both clocks the one that took least.
inline Moment moment() {
    Moment best;
    std::int64_t least = -1;
    for (int attempt = 0; attempt < 16; ++attempt) {
        std::uint64_t time = 0;
        const std::int64_t before = steady_nanoseconds();
        check(library().get_timestamp(&time), "cuptiGetTimestamp");
        const std::int64_t after = steady_nanoseconds();
        if (least < 0 || after - before < least) {
            least = after - before;
            best = {time, before + (after - before) / 2};
        }
    }
    return best;
}

/// Everything that is recorded. CUPTI's callbacks carry no pointer of ours, and may come late from a thread of its own: so
/// there is one for the process, which is never destroyed.
///
/// Two locks, since CUPTI may hold its own while it calls: records are read with the first one held, which calls CUPTI; with the
/// second one held, nothing is called.
struct Recorder {
    // Held while traces are made and stopped.
    std::mutex control;
    CUpti_SubscriberHandle subscriber = nullptr;
    bool stays_subscribed = false; // for what modules have, between traces too
    std::vector<CUpti_ActivityKind> kinds;
    std::size_t sessions = 0;

    std::mutex records;
    bool active = false;
    Moment begin;
    DeviceActivities data; // without stages; times are relative to `begin`, on CUPTI's clock
    std::unordered_map<std::string, std::uint32_t> names;
    std::unordered_map<std::uint32_t, std::uint32_t> stage_of_call;
    std::unordered_map<std::uint32_t, std::uint32_t> name_of_function;
    std::unordered_set<std::uint32_t> graph_launches; // by correlation

    std::mutex noting;
    std::vector<std::string> stages;
    std::unordered_map<std::string, std::uint32_t> stage_numbers;
    std::unordered_map<std::uint64_t, std::uint32_t> stage_of_node;
    std::unordered_map<std::string, bool>
        has_tensor_cores; // by a kernel's name for the linker; kept between traces

    std::atomic<const RangeListener*> other_listener{nullptr};

    double time_of(std::uint64_t nanoseconds) const {
        return static_cast<double>(static_cast<std::int64_t>(nanoseconds - begin.cupti)) / 1000;
    }
    std::uint32_t name(std::string_view text) {
        const auto [entry, added] =
            names.try_emplace(std::string(text), static_cast<std::uint32_t>(data.names.size()));
        if (added)
            data.names.emplace_back(text);
        return entry->second;
    }
    std::uint32_t stage(std::string_view text) {
        const auto [entry, added] =
            stage_numbers.try_emplace(std::string(text), static_cast<std::uint32_t>(stages.size()));
        if (added)
            stages.emplace_back(text);
        return entry->second;
    }
};

inline Recorder& recorder() {
    static Recorder& only = *new Recorder;
    return only;
}

// Records
// -----------------------------------------------------------------------------------------------------
// The members that are read here lie where they lay in CUDA 12.0 in every release since: new ones are added behind them.

template <class Record>
DeviceActivity activity_of(Recorder& to, const Record& record, ActivityKind kind) {
    DeviceActivity activity;
    const bool has_times = record.start != 0 || record.end != 0;
    activity.begin = has_times ? to.time_of(record.start) : 1;
    activity.end = has_times ? to.time_of(record.end) : 0;
    activity.kind = kind;
    activity.device = static_cast<int>(record.deviceId);
    activity.stream = record.streamId;
    activity.correlation = record.correlationId;
    return activity;
}

inline const char* name_of_copy(unsigned kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return "copy, host to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return "copy, device to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "copy, host to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "copy, device to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN:
        return "copy";
    default:
        return "copy, on the device";
    }
}

inline void add_call(Recorder& to, const CUpti_ActivityAPI& record) {
    const bool runtime = record.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    if (runtime && (record.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000 ||
                    record.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000))
        to.graph_launches.insert(record.correlationId);
    if (record.start == 0 && record.end == 0)
        return;
    const auto [entry, added] = to.name_of_function.try_emplace(2 * record.cbid + (runtime ? 1 : 0), 0);
    if (added) {
        const char* name = nullptr;
        (void)library().get_callback_name(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                                          record.cbid, &name);
        entry->second = to.name(name != nullptr ? name : "?");
    }
    to.data.calls.push_back(
        {to.time_of(record.start), to.time_of(record.end), record.threadId, entry->second});
}

template <class Record>
const Record& as(const CUpti_Activity& record) {
    return reinterpret_cast<const Record&>(record);
}

inline void add_record(Recorder& to, const CUpti_Activity& base) {
    DeviceActivity activity;
    switch (base.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& record = as<CUpti_ActivityKernel9>(base);
        activity = activity_of(to, record, ActivityKind::kernel);
        activity.graph_node = record.graphNodeId;
        activity.name = to.name(record.name != nullptr ? record.name : "?");
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& record = as<CUpti_ActivityMemcpy5>(base);
        activity = activity_of(to, record, ActivityKind::copy);
        activity.graph_node = record.graphNodeId;
        activity.bytes = record.bytes;
        activity.name = to.name(name_of_copy(record.copyKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& record = as<CUpti_ActivityMemcpyPtoP4>(base);
        activity = activity_of(to, record, ActivityKind::copy);
        activity.graph_node = record.graphNodeId;
        activity.bytes = record.bytes;
        activity.name = to.name("copy, device to device");
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& record = as<CUpti_ActivityMemset4>(base);
        activity = activity_of(to, record, ActivityKind::set);
        activity.graph_node = record.graphNodeId;
        activity.bytes = record.bytes;
        activity.name = to.name("set");
        break;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
        const auto& record = as<CUpti_ActivityGraphTrace>(base);
        activity = activity_of(to, record, ActivityKind::graph);
        activity.name = to.name("graph " + std::to_string(record.graphId));
        break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        add_call(to, as<CUpti_ActivityAPI>(base));
        return;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& record = as<CUpti_ActivityExternalCorrelation>(base);
        if (record.externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2)
            to.stage_of_call[record.correlationId] = static_cast<std::uint32_t>(record.externalId);
        return;
    }
    default:
        return;
    }
    if (activity.begin <= activity.end) // not so where its times are not known
        to.data.activities.push_back(activity);
    else
        ++to.data.dropped;
}

// Callbacks
// -----------------------------------------------------------------------------------------------------

inline constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

inline void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *buffer = static_cast<std::uint8_t*>(std::malloc(buffer_bytes)); // aligned to 8 and more, as is asked for
    *size = *buffer != nullptr ? buffer_bytes : 0;
    *most = 0;
}

inline void CUPTIAPI buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                      std::size_t /*size*/, std::size_t valid) {
    {
        Recorder& to = recorder();
        const std::lock_guard lock(to.records);
        if (to.active) {
            CUpti_Activity* record = nullptr;
            while (valid > 0 && library().activity_get_next_record(buffer, valid, &record) == CUPTI_SUCCESS)
                add_record(to, *record);
            std::size_t dropped = 0;
            if (library().activity_get_num_dropped_records(context, stream, &dropped) == CUPTI_SUCCESS)
                to.data.dropped += dropped;
        }
    }
    std::free(buffer);
}

/// The stages that the thread is in, innermost last; of more than these the outermost.
struct StageStack {
    std::uint32_t stages[8] = {};
    std::size_t depth = 0;
};
inline thread_local StageStack stage_stack;

inline constexpr RangeListener range_listener_of_trace{
    [](const char* name) noexcept {
        Recorder& to = recorder();
        const std::uint32_t stage = [&] {
            const std::lock_guard lock(to.noting);
            return to.stage(name);
        }();
        StageStack& stack = stage_stack;
        if (stack.depth < 8)
            stack.stages[stack.depth] = stage;
        ++stack.depth;
        (void)library().push_external_correlation_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, stage);
        if (const RangeListener* const other = to.other_listener)
            other->begin(name);
    },
    []() noexcept {
        std::uint64_t last = 0;
        (void)library().pop_external_correlation_id(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, &last);
        --stage_stack.depth;
        if (const RangeListener* const other = recorder().other_listener)
            other->end();
    },
};

/// Of kernels that have one name, as in two modules, one with Tensor Cores counts for all.
inline void module_loaded(const CUpti_ModuleResourceData& module) {
    if (module.pCubin == nullptr)
        return;
    std::vector<kernel_code::Code> functions = kernel_code::functions_of(module.pCubin, module.cubinSize);
    Recorder& to = recorder();
    const std::lock_guard lock(to.noting);
    for (kernel_code::Code& function : functions)
        to.has_tensor_cores[std::move(function.name)] |= function.has_tensor_core_instructions;
}

/// A node that is captured in a stage is the stage's, and so are the copies of it that CUDA makes when it instantiates. Nodes
/// of other types, such as conditional ones, do no work of their own and are not asked about.
inline void graph_changed(CUpti_CallbackId id, const CUpti_GraphData* graph) {
    if (graph->node == nullptr ||
        (graph->nodeType != CU_GRAPH_NODE_TYPE_KERNEL && graph->nodeType != CU_GRAPH_NODE_TYPE_MEMCPY &&
         graph->nodeType != CU_GRAPH_NODE_TYPE_MEMSET))
        return;
    std::uint64_t node = 0;
    if (library().get_graph_node_id(graph->node, &node) != CUPTI_SUCCESS)
        return;
    Recorder& to = recorder();
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        const StageStack& stack = stage_stack;
        if (stack.depth == 0)
            return;
        const std::lock_guard lock(to.noting);
        to.stage_of_node[node] = stack.stages[stack.depth <= 8 ? stack.depth - 1 : 7];
    } else if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED && graph->originalNode != nullptr) {
        std::uint64_t original = 0;
        if (library().get_graph_node_id(graph->originalNode, &original) != CUPTI_SUCCESS)
            return;
        const std::lock_guard lock(to.noting);
        if (const auto found = to.stage_of_node.find(original); found != to.stage_of_node.end())
            to.stage_of_node[node] = found->second;
    }
}

inline void CUPTIAPI resource_changed(void* /*user*/, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                      const void* data) {
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || data == nullptr)
        return;
    const void* const resource = static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor;
    if (resource == nullptr)
        return;
    if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED)
        module_loaded(*static_cast<const CUpti_ModuleResourceData*>(resource));
    else
        graph_changed(id, static_cast<const CUpti_GraphData*>(resource));
}

} // namespace sluice::detail::cupti
#endif
