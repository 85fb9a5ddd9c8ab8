// CUPTI's periodic sampling of counters. cupti_counters.inl includes this where CUPTI's headers have it.
#pragma once

#include <sluice/report/detail/cupti_pm_library.hpp>
#include <sluice/report/detail/cupti_recorder.hpp>

#if SLUICE_HAS_CUPTI && __has_include(<cupti_pmsampling.h>) && __has_include(<cupti_profiler_host.h>)
#include <atomic>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <sluice/report/device_counters.hpp>

namespace sluice::detail::cupti {

/// A device that can be sampled, or is. CUPTI reads `config` for as long as it has the object.
struct SampledDevice {
    CUpti_PmSampling_Object* object = nullptr;
    std::vector<std::uint8_t> config;
    bool in_use = false;
};

/// By device. Never destroyed: CUPTI may outlast the program's other objects.
struct SampledDevices {
    std::mutex mutex;
    std::map<int, SampledDevice> devices;
};
inline SampledDevices& sampled_devices() {
    static SampledDevices& only = *new SampledDevices;
    return only;
}

/// Takes the device for one sampler, until this is destroyed.
class DeviceLease {
public:
    DeviceLease(int device, std::vector<std::uint8_t> config) : device_(device) {
        SampledDevices& all = sampled_devices();
        const std::lock_guard lock(all.mutex);
        SampledDevice& entry = all.devices[device];
        if (entry.in_use) {
            throw Error("CounterSampler: another sampler has device " + std::to_string(device) +
                        ", and CUPTI serves one at a time; stop it first");
        }
        if (entry.object == nullptr) {
            auto arguments =
                sized<CUpti_PmSampling_Enable_Params>(CUpti_PmSampling_Enable_Params_STRUCT_SIZE);
            arguments.deviceIndex = static_cast<std::size_t>(device);
            check_sampling(pm_library().enable(&arguments), "cuptiPmSamplingEnable");
            entry.object = arguments.pPmSamplingObject;
            entry.config = std::move(config); // of one device it is always the same
        }
        entry.in_use = true;
        entry_ = &entry;
    }
    DeviceLease(const DeviceLease&) = delete;
    DeviceLease& operator=(const DeviceLease&) = delete;
    /// Before CUDA 13, giving the object back could end all of CUPTI's work in the program, so it is kept.
    ~DeviceLease() {
        SampledDevices& all = sampled_devices();
        const std::lock_guard lock(all.mutex);
        entry_->in_use = false;
        if (library().version < 130000)
            return;
        auto arguments = sized<CUpti_PmSampling_Disable_Params>(CUpti_PmSampling_Disable_Params_STRUCT_SIZE);
        arguments.pPmSamplingObject = entry_->object;
        if (pm_library().disable(&arguments) == CUPTI_SUCCESS)
            all.devices.erase(device_);
    }

    CUpti_PmSampling_Object* object() const noexcept { return entry_->object; }
    const std::vector<std::uint8_t>& config() const noexcept { return entry_->config; }

private:
    int device_;
    SampledDevice* entry_ = nullptr;
};

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
        lease_ = std::make_unique<DeviceLease>(device, host_->config());
        sampling_ = lease_->object();
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
        decode(false); // what the thread has not seen
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
        config.configSize = lease_->config().size();
        config.pConfig = lease_->config().data();
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
                decode(true);
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

    // Takes over all that the device has sampled so far; while it goes on sampling, only until sampling is to end: new samples
    // may come as fast as they can be taken over.
    void decode(bool sampling) {
        for (bool more = true; more && !(sampling && ending_.load());) {
            auto arguments =
                sized<CUpti_PmSampling_DecodeData_Params>(CUpti_PmSampling_DecodeData_Params_STRUCT_SIZE);
            arguments.pPmSamplingObject = sampling_;
            arguments.pCounterDataImage = data_.data();
            arguments.counterDataImageSize = data_.size();
            check_sampling(pm_library().decode(&arguments), "cuptiPmSamplingDecodeData");
            result_.overflowed = result_.overflowed || arguments.overflow != 0;
            const std::size_t before = result_.samples.size();
            take_samples();
            more = arguments.decodeStopReason != CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS &&
                   result_.samples.size() > before;
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
    std::unique_ptr<DeviceLease> lease_;
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
