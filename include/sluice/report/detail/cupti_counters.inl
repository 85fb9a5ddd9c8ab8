// Bodies of CounterSampler, of cupti_counters.hpp.
#pragma once

#include <sluice/report/detail/cupti_recorder.hpp>

/// 1 where counters can be sampled: CUPTI's headers of CUDA 12.6 or later are there.
#define SLUICE_HAS_PM_SAMPLING 0
#if SLUICE_HAS_CUPTI
#if __has_include(<cupti_pmsampling.h>) && __has_include(<cupti_profiler_host.h>)
#undef SLUICE_HAS_PM_SAMPLING
#define SLUICE_HAS_PM_SAMPLING 1
#endif
#endif

#if SLUICE_HAS_PM_SAMPLING
#include <sluice/report/detail/cupti_pm_sampling.hpp>

namespace sluice {

inline std::string CounterSampler::why_unavailable() {
    if (!detail::cupti::library().problem.empty())
        return detail::cupti::library().problem;
    return detail::cupti::pm_library().problem;
}

inline CounterSampler::CounterSampler(CounterOptions options) {
    if (const std::string problem = why_unavailable(); !problem.empty())
        throw Error("CounterSampler: " + problem);
    if (!(options.interval >= 5 && options.interval <= 1e6)) {
        throw Error("CounterSampler: expected an interval from 5 to 1000000 us, got " +
                    std::to_string(options.interval));
    }
    sampling_ = std::make_unique<detail::cupti::PmSampling>(options.device, options.interval);
}

inline CounterSampler::~CounterSampler() = default;

inline DeviceCounters CounterSampler::stop() {
    if (!sampling_)
        throw Error("CounterSampler::stop: it has stopped already");
    const std::unique_ptr<detail::cupti::PmSampling> sampling = std::move(sampling_);
    return sampling->stop();
}

} // namespace sluice

#else

namespace sluice {

namespace detail::cupti {
class PmSampling {};
} // namespace detail::cupti

inline std::string CounterSampler::why_unavailable() {
#if SLUICE_HAS_CUDA
    return "this program was compiled without CUPTI's headers for sampling: expected cupti_pmsampling.h, of "
           "CUDA 12.6 or "
           "later";
#else
    return "this program was compiled without CUDA, and CUPTI samples CUDA devices";
#endif
}
inline CounterSampler::CounterSampler(CounterOptions /*options*/) {
    throw Error("CounterSampler: " + why_unavailable());
}
inline CounterSampler::~CounterSampler() = default;
inline DeviceCounters CounterSampler::stop() { throw Error("CounterSampler::stop: it has stopped already"); }

} // namespace sluice

#endif
