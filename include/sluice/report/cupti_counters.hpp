/// \file
/// Sampling how busy a device's SMs, Tensor Cores and memory are, with CUPTI.
///
/// The counters are the hardware's, measured while the program runs as usual: kernels are neither repeated nor put one after
/// another. What is sampled is the whole device, whoever uses it. As `report/cupti.hpp`, this links nothing; it needs the
/// headers and the library of CUDA 12.6 or later.
#pragma once

#include <memory>
#include <string>

#include <sluice/report/device_counters.hpp>

namespace sluice {

namespace detail::cupti {
class PmSampling;
}

/// What a `CounterSampler` samples.
struct CounterOptions {
    int device = 0; ///< Which device.
    /// Microseconds that one sample covers, at least 5. Bringing a sample to the host takes some ten microseconds of a
    /// thread: what it cannot bring in time is brought in `stop`, or lost where there is too much of it.
    double interval = 100;
};

/// Samples counters of a device, from when it is made until `stop`.
///
/// Counters may be read by everybody only where the driver was loaded so (`NVreg_RestrictProfilingToAdminUsers=0`), otherwise
/// by users with CAP_SYS_ADMIN. The device needs compute capability 8.6 or later, and nobody else may sample it, not even
/// monitoring services such as DCGM's profiling. While it samples, CUPTI holds the device's clocks still, which may change how
/// long kernels take.
class CounterSampler {
public:
    /// Begins to sample. \throws Error in one sentence where counters may not or cannot be read.
    explicit CounterSampler(CounterOptions options = {});
    CounterSampler(const CounterSampler&) = delete;            ///< Cannot be copied.
    CounterSampler& operator=(const CounterSampler&) = delete; ///< Cannot be assigned.
    /// Stops, and forgets what was sampled.
    ~CounterSampler();

    /// Stops, and gives the samples, with times on the steady clock. \throws Error where it has stopped before, or where
    /// sampling failed meanwhile.
    DeviceCounters stop();

    /// One sentence that says what is missing on this machine; empty if nothing is. Whether this user may read counters shows
    /// once a sampler is made.
    static std::string why_unavailable();

private:
    std::unique_ptr<detail::cupti::PmSampling> sampling_;
};

} // namespace sluice

#include <sluice/report/detail/cupti_counters.inl>
