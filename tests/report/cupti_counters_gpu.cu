// Counters of a device as CUPTI samples them. Where this user may not read them, that is said in one sentence.
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include <sluice/memory/buffer.hpp>
#include <sluice/report/cupti.hpp>
#include <sluice/report/cupti_counters.hpp>

#include "support/error_text.hpp"

namespace report_cupti_counters {

using namespace sluice;
using namespace sluice::test;

namespace {

__global__ void spin_kernel(unsigned microseconds) {
    unsigned long long begin = 0;
    unsigned long long now = 0;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < 1000ull * microseconds);
}

__global__ void stream_kernel(const float4* in, float4* out, std::size_t count) {
    const std::size_t stride = std::size_t{blockDim.x} * gridDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
        out[i] = in[i];
}

} // namespace

TEST_CASE("counters: SMs are active while kernels run, and memory is while they copy") {
    std::optional<CounterSampler> sampler;
    const std::string refused = text_of([&] { sampler.emplace(); });
    if (!sampler) {
        MESSAGE("skipped: " << refused);
        CHECK(contains(refused, "CounterSampler"));
        return;
    }
    constexpr std::size_t count = std::size_t{1} << 24; // of 16 bytes
    const DeviceBuffer<float4, Cuda> in(count);
    DeviceBuffer<float4, Cuda> out(count);
    int sms = 0;
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CudaStream stream;
    KernelTrace trace;
    for (int i = 0; i < 10; ++i)
        spin_kernel<<<static_cast<unsigned>(sms), 128, 0, stream.get()>>>(2000);
    for (int i = 0; i < 50; ++i)
        stream_kernel<<<static_cast<unsigned>(8 * sms), 256, 0, stream.get()>>>(in.data(), out.data(), count);
    stream.sync();
    DeviceActivities activities = trace.stop();
    const DeviceCounters counters = sampler->stop();
    CHECK(!counters.samples.empty());
    CHECK(!counters.overflowed);
    CHECK(contains(text_of([&] { (void)sampler->stop(); }), "has stopped already"));

    activities.stages = {"spin", "stream"};
    for (DeviceActivity& activity : activities.activities)
        activity.stage = contains(activities.names[activity.name], "spin") ? 0 : 1;
    const DeviceCounterReport report = counters_of(counters, activities);
    MESSAGE(to_table(report) << "uncertainty " << counters.uncertainty << " us, " << counters.samples.size()
                             << " samples");
    REQUIRE(report.stages.size() == 2);
    CHECK(report.stages[0].sm_active > 0.8);
    CHECK(report.stages[0].memory < 0.1);
    CHECK(report.stages[1].memory > 0.4);
    CHECK(report.all.tensor_cores < 0.01);
}

} // namespace report_cupti_counters
