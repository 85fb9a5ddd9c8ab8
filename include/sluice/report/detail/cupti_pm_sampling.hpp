// CUPTI's periodic sampling of counters. cupti_counters.inl includes this where CUPTI's headers have it.
#pragma once

#include <sluice/report/detail/cupti_recorder.hpp>

#if SLUICE_HAS_CUPTI && __has_include(<cupti_pmsampling.h>) && __has_include(<cupti_profiler_host.h>)
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <sluice/report/device_counters.hpp>

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

/// The sampling object of a device. Some releases of CUPTI end all of their work when one is given back, so each stays until
/// the program ends.
inline CUpti_PmSampling_Object* sampling_of(int device) {
    static std::mutex mutex;
    static std::map<int, CUpti_PmSampling_Object*> objects;
    const std::lock_guard lock(mutex);
    if (const auto found = objects.find(device); found != objects.end())
        return found->second;
    auto arguments = sized<CUpti_PmSampling_Enable_Params>(CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
    arguments.deviceIndex = static_cast<std::size_t>(device);
    check_sampling(pm_library().enable(&arguments), "cuptiPmSamplingEnable");
    return objects[device] = arguments.pPmSamplingObject;
}

/// Samples one device; a thread brings the samples to the host before the device's buffer is full.
class PmSampling {
public:
    PmSampling(int device, double interval) : interval_(interval) {
        require_device(device);
        result_.device = device;
        auto initialize =
            sized<CUpti_Profiler_Initialize_Params>(CUpti_Profiler_Initialize_Params_STRUCT_SIZE);
        check_sampling(pm_library().profiler_initialize(&initialize), "cuptiProfilerInitialize");
        auto chip = sized<CUpti_Device_GetChipName_Params>(CUpti_Device_GetChipName_Params_STRUCT_SIZE);
        chip.deviceIndex = static_cast<std::size_t>(device);
        check_sampling(pm_library().get_chip_name(&chip), "cuptiDeviceGetChipName");
        auto available = sized<CUpti_PmSampling_GetCounterAvailability_Params>(
            CUpti_PmSampling_GetCounterAvailability_Params_STRUCT_SIZE);
        available.deviceIndex = static_cast<std::size_t>(device);
        check_sampling(pm_library().availability(&available), "cuptiPmSamplingGetCounterAvailability");
        availability_.resize(available.counterAvailabilityImageSize);
        available.pCounterAvailabilityImage = availability_.data();
        check_sampling(pm_library().availability(&available), "cuptiPmSamplingGetCounterAvailability");
        host_ = std::make_unique<MetricHost>(chip.pChipName, availability_.data());
        config_ = host_->config();
        sampling_ = sampling_of(device);
        configure();
        begin_ = moment();
        auto start = sized<CUpti_PmSampling_Start_Params>(CUpti_PmSampling_Start_Params_STRUCT_SIZE);
        start.pPmSamplingObject = sampling_;
        check_sampling(pm_library().start(&start), "cuptiPmSamplingStart");
        started_ = moment();
        thread_ = std::thread([this] { collect(); });
    }
    PmSampling(const PmSampling&) = delete;
    PmSampling& operator=(const PmSampling&) = delete;
    ~PmSampling() {
        if (thread_.joinable())
            (void)end();
    }

    DeviceCounters stop() {
        const CUptiResult stopped = end();
        if (failure_)
            std::rethrow_exception(failure_);
        check_sampling(stopped, "cuptiPmSamplingStop");
        decode(); // what the thread has not seen
        set_clock();
        return std::move(result_);
    }

private:
    static void require_device(int device) {
        int devices = 0;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || device < 0 || device >= devices) {
            (void)cudaGetLastError();
            throw Error("CounterSampler: expected one of " + std::to_string(devices) +
                        " devices, counted from 0, got " + std::to_string(device));
        }
        int major = 0;
        int minor = 0;
        (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
        (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
        if (10 * major + minor < 86) {
            throw Error("CounterSampler: the device has compute capability " + std::to_string(major) + '.' +
                        std::to_string(minor) + ", expected 8.6 or later");
        }
    }

    void configure() {
        auto config = sized<CUpti_PmSampling_SetConfig_Params>(CUpti_PmSampling_SetConfig_Params_STRUCT_SIZE);
        config.pPmSamplingObject = sampling_;
        config.configSize = config_.size();
        config.pConfig = config_.data();
        config.hardwareBufferSize = std::size_t{256} << 20;
        config.samplingInterval = static_cast<std::uint64_t>(1000 * interval_);
        config.triggerMode = CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL;
        check_sampling(pm_library().set_config(&config), "cuptiPmSamplingSetConfig");
        auto size = sized<CUpti_PmSampling_GetCounterDataSize_Params>(
            CUpti_PmSampling_GetCounterDataSize_Params_STRUCT_SIZE);
        size.pPmSamplingObject = sampling_;
        size.pMetricNames = metric_names;
        size.numMetrics = sampled_metrics;
        size.maxSamples = 2048;
        check_sampling(pm_library().data_size(&size), "cuptiPmSamplingGetCounterDataSize");
        data_.resize(size.counterDataSize);
        clear_data();
    }
    void clear_data() {
        auto arguments = sized<CUpti_PmSampling_CounterDataImage_Initialize_Params>(
            CUpti_PmSampling_CounterDataImage_Initialize_Params_STRUCT_SIZE);
        arguments.pPmSamplingObject = sampling_;
        arguments.counterDataSize = data_.size();
        arguments.pCounterData = data_.data();
        check_sampling(pm_library().data_initialize(&arguments), "cuptiPmSamplingCounterDataImageInitialize");
    }

    void collect() noexcept {
        try {
            while (!ending_.load()) {
                decode();
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    CUptiResult end() {
        auto arguments = sized<CUpti_PmSampling_Stop_Params>(CUpti_PmSampling_Stop_Params_STRUCT_SIZE);
        arguments.pPmSamplingObject = sampling_;
        ending_.store(true);
        thread_.join();
        return pm_library().stop(&arguments);
    }

    // Takes over all that the device has sampled so far.
    void decode() {
        for (bool more = true; more;) {
            auto arguments =
                sized<CUpti_PmSampling_DecodeData_Params>(CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
            arguments.pPmSamplingObject = sampling_;
            arguments.pCounterDataImage = data_.data();
            arguments.counterDataImageSize = data_.size();
            check_sampling(pm_library().decode(&arguments), "cuptiPmSamplingDecodeData");
            result_.overflowed = result_.overflowed || arguments.overflow != 0;
            more = arguments.decodeStopReason == CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL;
            take_samples();
            clear_data();
        }
    }
    void take_samples() {
        auto info = sized<CUpti_PmSampling_GetCounterDataInfo_Params>(
            CUpti_PmSampling_GetCounterDataInfo_Params_STRUCT_SIZE);
        info.pCounterDataImage = data_.data();
        info.counterDataImageSize = data_.size();
        check_sampling(pm_library().data_info(&info), "cuptiPmSamplingGetCounterDataInfo");
        for (std::size_t i = 0; i < info.numCompletedSamples; ++i) {
            auto when = sized<CUpti_PmSampling_CounterData_GetSampleInfo_Params>(
                CUpti_PmSampling_CounterData_GetSampleInfo_Params_STRUCT_SIZE);
            when.pPmSamplingObject = sampling_;
            when.pCounterDataImage = data_.data();
            when.counterDataImageSize = data_.size();
            when.sampleIndex = i;
            check_sampling(pm_library().sample_info(&when), "cuptiPmSamplingCounterDataGetSampleInfo");
            double values[sampled_metrics] = {};
            host_->evaluate(data_, i, values);
            if (when.startTimestamp == 0 || when.endTimestamp <= when.startTimestamp)
                continue; // the first one may have no begin
            if (result_.samples.empty())
                first_ = when.startTimestamp;
            result_.samples.push_back({microseconds(when.startTimestamp), microseconds(when.endTimestamp),
                                       values[0] / 100, values[1] / 100, values[2] / 100});
        }
    }
    // Since the first sample began.
    double microseconds(std::uint64_t time) const {
        return static_cast<double>(static_cast<std::int64_t>(time - first_)) / 1000;
    }

    // Puts the samples on the steady clock. By CUPTI's own clock where the times are of it: the first sample then begins while
    // sampling was being started. Otherwise they are the device's, and that is all that is known of where they begin.
    void set_clock() {
        const double slack = 1e3 + 20 * interval_;
        const double starting = static_cast<double>(started_.steady - begin_.steady) / 1000;
        const double after_begin =
            static_cast<double>(static_cast<std::int64_t>(first_ - begin_.cupti)) / 1000;
        double zero = static_cast<double>(begin_.steady) / 1000;
        if (after_begin >= -slack && after_begin <= starting + slack) {
            zero += after_begin;
            result_.uncertainty = 0;
        } else {
            zero += starting / 2;
            result_.uncertainty = starting / 2 + interval_;
        }
        for (CounterSample& sample : result_.samples) {
            sample.begin += zero;
            sample.end += zero;
        }
    }

    double interval_;
    std::vector<std::uint8_t> availability_;
    std::unique_ptr<MetricHost> host_;
    std::vector<std::uint8_t> config_;
    CUpti_PmSampling_Object* sampling_ = nullptr;
    std::vector<std::uint8_t> data_;
    Moment begin_;
    Moment started_;
    std::uint64_t first_ = 0;
    DeviceCounters result_;
    std::atomic<bool> ending_{false};
    std::exception_ptr failure_;
    std::thread thread_;
};

} // namespace sluice::detail::cupti
#endif
