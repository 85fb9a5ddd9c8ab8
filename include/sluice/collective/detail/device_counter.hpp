/// \file
/// Counts on a device that the host watches. Included where NCCL is there.
#pragma once

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <sluice/backend/detail/cuda/driver_function.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

namespace sluice::detail {

/// A kernel of one thread that adds 1 to a word in pinned memory, which the host reads while the device works. It can be
/// captured, where what the host could ask of a stream (an event, a query) says nothing of a replay. Of the device that was
/// current when it was made; never unloaded, since graphs may hold it.
class DeviceCounter {
public:
    DeviceCounter() {
        // Makes the device's context current, which the driver's functions need.
        SLUICE_CUDA_CHECK(cudaFree(nullptr));
        const auto load = driver_function<decltype(&cuModuleLoadData)>("cuModuleLoadData", "a communicator");
        const auto find =
            driver_function<decltype(&cuModuleGetFunction)>("cuModuleGetFunction", "a communicator");
        launch_ = driver_function<decltype(&cuLaunchKernel)>("cuLaunchKernel", "a communicator");
        CUmodule module = nullptr;
        check_driver(load(&module, source), "cuModuleLoadData", __FILE__, __LINE__);
        check_driver(find(&kernel_, module, "sluice_count"), "cuModuleGetFunction", __FILE__, __LINE__);
    }

    /// Enqueues the count. The device is current.
    void count(cudaStream_t stream, volatile unsigned* word) const {
        void* arguments[] = {&word};
        check_driver(launch_(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel",
                     __FILE__, __LINE__);
    }

private:
    static constexpr const char* source = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry sluice_count(.param .u64 word)
{
    .reg .u64 %address<3>;
    .reg .u32 %value<3>;
    ld.param.u64 %address1, [word];
    cvta.to.global.u64 %address2, %address1;
    ld.volatile.global.u32 %value1, [%address2];
    add.u32 %value2, %value1, 1;
    st.volatile.global.u32 [%address2], %value2;
    ret;
}
)";

    decltype(&cuLaunchKernel) launch_ = nullptr;
    CUfunction kernel_ = nullptr;
};

} // namespace sluice::detail

#endif
