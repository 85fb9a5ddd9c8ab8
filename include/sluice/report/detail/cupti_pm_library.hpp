// CUPTI's functions for sampling counters, and its metrics.
#pragma once

#include <sluice/report/detail/cupti_library.hpp>

#if SLUICE_HAS_CUPTI && __has_include(<cupti_pmsampling.h>) && __has_include(<cupti_profiler_host.h>)
#include <cstdint>
#include <string>
#include <vector>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

namespace sluice::detail::cupti {

/// What is called of the library to sample, besides `Library`.
struct PmLibrary {
    std::string problem = {};
    decltype(&cuptiProfilerInitialize) profiler_initialize = nullptr;
    decltype(&cuptiDeviceGetChipName) get_chip_name = nullptr;
    decltype(&cuptiProfilerHostInitialize) host_initialize = nullptr;
    decltype(&cuptiProfilerHostDeinitialize) host_deinitialize = nullptr;
    decltype(&cuptiProfilerHostConfigAddMetrics) host_add_metrics = nullptr;
    decltype(&cuptiProfilerHostGetConfigImageSize) host_config_size = nullptr;
    decltype(&cuptiProfilerHostGetConfigImage) host_config = nullptr;
    decltype(&cuptiProfilerHostGetNumOfPasses) host_passes = nullptr;
    decltype(&cuptiProfilerHostEvaluateToGpuValues) host_evaluate = nullptr;
    decltype(&cuptiPmSamplingGetCounterAvailability) availability = nullptr;
    decltype(&cuptiPmSamplingEnable) enable = nullptr;
    decltype(&cuptiPmSamplingDisable) disable = nullptr;
    decltype(&cuptiPmSamplingSetConfig) set_config = nullptr;
    decltype(&cuptiPmSamplingGetCounterDataSize) data_size = nullptr;
    decltype(&cuptiPmSamplingCounterDataImageInitialize) data_initialize = nullptr;
    decltype(&cuptiPmSamplingStart) start = nullptr;
    decltype(&cuptiPmSamplingStop) stop = nullptr;
    decltype(&cuptiPmSamplingDecodeData) decode = nullptr;
    decltype(&cuptiPmSamplingGetCounterDataInfo) data_info = nullptr;
    decltype(&cuptiPmSamplingCounterDataGetSampleInfo) sample_info = nullptr;
};

inline PmLibrary open_pm_library() {
    PmLibrary pm;
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(library().get_version), &info) == 0 || info.dli_fname == nullptr) {
        pm.problem = "CUPTI's library cannot be found again";
        return pm;
    }
    // CUPTI loads these by their names; they lie beside it, where the loader need not look.
    const std::string file = info.dli_fname;
    const std::string folder = file.substr(0, file.rfind('/') + 1);
    for (const char* const name : {"libnvperf_host.so", "libnvperf_target.so"})
        (void)dlopen((folder + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string missing;
    find(handle, "cuptiProfilerInitialize", pm.profiler_initialize, &missing);
    find(handle, "cuptiDeviceGetChipName", pm.get_chip_name, &missing);
    find(handle, "cuptiProfilerHostInitialize", pm.host_initialize, &missing);
    find(handle, "cuptiProfilerHostDeinitialize", pm.host_deinitialize, &missing);
    find(handle, "cuptiProfilerHostConfigAddMetrics", pm.host_add_metrics, &missing);
    find(handle, "cuptiProfilerHostGetConfigImageSize", pm.host_config_size, &missing);
    find(handle, "cuptiProfilerHostGetConfigImage", pm.host_config, &missing);
    find(handle, "cuptiProfilerHostGetNumOfPasses", pm.host_passes, &missing);
    find(handle, "cuptiProfilerHostEvaluateToGpuValues", pm.host_evaluate, &missing);
    find(handle, "cuptiPmSamplingGetCounterAvailability", pm.availability, &missing);
    find(handle, "cuptiPmSamplingEnable", pm.enable, &missing);
    find(handle, "cuptiPmSamplingDisable", pm.disable, &missing);
    find(handle, "cuptiPmSamplingSetConfig", pm.set_config, &missing);
    find(handle, "cuptiPmSamplingGetCounterDataSize", pm.data_size, &missing);
    find(handle, "cuptiPmSamplingCounterDataImageInitialize", pm.data_initialize, &missing);
    find(handle, "cuptiPmSamplingStart", pm.start, &missing);
    find(handle, "cuptiPmSamplingStop", pm.stop, &missing);
    find(handle, "cuptiPmSamplingDecodeData", pm.decode, &missing);
    find(handle, "cuptiPmSamplingGetCounterDataInfo", pm.data_info, &missing);
    find(handle, "cuptiPmSamplingCounterDataGetSampleInfo", pm.sample_info, &missing);
    if (!missing.empty())
        pm.problem = "the CUPTI library that was found is too old to sample counters: it has no " + missing;
    return pm;
}

inline const PmLibrary& pm_library() {
    static const PmLibrary opened = open_pm_library();
    return opened;
}

/// Throws `Error` unless `result` is a success.
inline void check_sampling(CUptiResult result, const char* function) {
    if (result == CUPTI_SUCCESS)
        return;
    const char* text = nullptr;
    (void)library().get_result_string(result, &text);
    std::string message = std::string("CounterSampler: ") + function + " failed: " +
                          (text != nullptr ? text : ("result " + std::to_string(static_cast<int>(result))));
    if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
        result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES)
        message += "; this user may not read the device's counters: expected CAP_SYS_ADMIN, or a driver that "
                   "was loaded "
                   "with NVreg_RestrictProfilingToAdminUsers=0";
    throw Error(message);
}

/// Arguments of a function of CUPTI, which say how long they are.
template <class Arguments>
Arguments sized(std::size_t size) {
    Arguments arguments{};
    arguments.structSize = size;
    return arguments;
}

/// Can be sampled in one pass on all devices since compute capability 8.0.
inline constexpr std::size_t sampled_metrics = 3;
inline const char* metric_names[sampled_metrics] = {
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
};

/// Turns counters into metrics.
class MetricHost {
public:
    MetricHost(const char* chip, const std::uint8_t* availability) {
        auto arguments =
            sized<CUpti_Profiler_Host_Initialize_Params>(CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE);
        arguments.profilerType = CUPTI_PROFILER_TYPE_PM_SAMPLING;
        arguments.pChipName = chip;
        arguments.pCounterAvailabilityImage = availability;
        check_sampling(pm_library().host_initialize(&arguments), "cuptiProfilerHostInitialize");
        host_ = arguments.pHostObject;
    }
    MetricHost(const MetricHost&) = delete;
    MetricHost& operator=(const MetricHost&) = delete;
    ~MetricHost() {
        auto arguments = sized<CUpti_Profiler_Host_Deinitialize_Params>(
            CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE);
        arguments.pHostObject = host_;
        (void)pm_library().host_deinitialize(&arguments);
    }

    /// What the device is to count.
    std::vector<std::uint8_t> config() {
        auto metrics = sized<CUpti_Profiler_Host_ConfigAddMetrics_Params>(
            CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE);
        metrics.pHostObject = host_;
        metrics.ppMetricNames = metric_names;
        metrics.numMetrics = sampled_metrics;
        check_sampling(pm_library().host_add_metrics(&metrics), "cuptiProfilerHostConfigAddMetrics");
        auto size = sized<CUpti_Profiler_Host_GetConfigImageSize_Params>(
            CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE);
        size.pHostObject = host_;
        check_sampling(pm_library().host_config_size(&size), "cuptiProfilerHostGetConfigImageSize");
        std::vector<std::uint8_t> image(size.configImageSize);
        auto get = sized<CUpti_Profiler_Host_GetConfigImage_Params>(
            CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE);
        get.pHostObject = host_;
        get.configImageSize = image.size();
        get.pConfigImage = image.data();
        check_sampling(pm_library().host_config(&get), "cuptiProfilerHostGetConfigImage");
        auto passes = sized<CUpti_Profiler_Host_GetNumOfPasses_Params>(
            CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE);
        passes.configImageSize = image.size();
        passes.pConfigImage = image.data();
        check_sampling(pm_library().host_passes(&passes), "cuptiProfilerHostGetNumOfPasses");
        if (passes.numOfPasses != 1) {
            throw Error("CounterSampler: this device would have to run the work " +
                        std::to_string(passes.numOfPasses) + " times to count, expected once");
        }
        return image;
    }

    void evaluate(const std::vector<std::uint8_t>& data, std::size_t sample, double* values) {
        auto arguments = sized<CUpti_Profiler_Host_EvaluateToGpuValues_Params>(
            CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE);
        arguments.pHostObject = host_;
        arguments.pCounterDataImage = data.data();
        arguments.counterDataImageSize = data.size();
        arguments.rangeIndex = sample;
        arguments.ppMetricNames = metric_names;
        arguments.numMetrics = sampled_metrics;
        arguments.pMetricValues = values;
        check_sampling(pm_library().host_evaluate(&arguments), "cuptiProfilerHostEvaluateToGpuValues");
    }

private:
    CUpti_Profiler_Host_Object* host_ = nullptr;
};

} // namespace sluice::detail::cupti
#endif
