// Counts on a device that the host watches. Included where NCCL is there.
#pragma once

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <utility>

#include <sluice/backend/detail/cuda/capture.hpp>
#include <sluice/backend/detail/cuda/driver_function.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

namespace sluice::detail {

/// A kernel of one thread that counts, and writes the count to a word in pinned memory, which the host reads while the device
/// works. It can be captured, where what the host could ask of a stream (an event, a query) says nothing of a replay. The count
/// itself is in device memory, since a kernel that read pinned memory would wait for the bus. Of the device
/// that was current when it was made; never unloaded, since graphs may hold it.
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

    /// Counts that one object keeps, each from 0.
    static constexpr unsigned counts = 2;

    /// Enqueues that count `which` goes up by 1 and is written to `words[which]`, and `note` to `words[counts + which]`, after all
    /// others of this object. The device is current. In a capture nothing of the stream's comes after it, so that what follows need
    /// not wait for a kernel of 2 µs.
    void count(cudaStream_t stream, unsigned which, volatile unsigned* words, unsigned note) {
        const CudaCapture capture = capture_of(stream);
        volatile unsigned* const word = words + which;
        if (capture.graph == nullptr)
            return launch(stream, which, word, note);
        if (latest_.graph != nullptr && latest_.number == capture.number) {
            CudaCapture after = capture;
            after.last.push_back(latest_.last.front());
            if (!after.edges.empty())
                after.edges.push_back({});
            continue_capture_after(stream, std::move(after));
        }
        launch(stream, which, word, note);
        latest_ = capture_of(stream);
        continue_capture_after(stream, capture);
    }

private:
    void launch(cudaStream_t stream, unsigned which, volatile unsigned* word, unsigned note) const {
        void* arguments[] = {&word, &which, &note};
        check_driver(launch_(kernel_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel",
                     __FILE__, __LINE__);
    }

    static constexpr const char* source = R"(
.version 7.0
.target sm_52
.address_size 64
.global .align 4 .u32 sluice_counts[2];
.visible .entry sluice_count(.param .u64 word, .param .u32 which, .param .u32 note)
{
    .reg .u64 %address<5>;
    .reg .u32 %value<5>;
    ld.param.u32 %value1, [which];
    mov.u64 %address1, sluice_counts;
    mad.wide.u32 %address2, %value1, 4, %address1;
    ld.global.u32 %value2, [%address2];
    add.u32 %value3, %value2, 1;
    st.global.u32 [%address2], %value3;
    ld.param.u64 %address3, [word];
    cvta.to.global.u64 %address4, %address3;
    ld.param.u32 %value4, [note];
    st.volatile.global.u32 [%address4+8], %value4;
    st.volatile.global.u32 [%address4], %value3;
    ret;
}
)";

    decltype(&cuLaunchKernel) launch_ = nullptr;
    CUfunction kernel_ = nullptr;
    CudaCapture latest_; // as it was after the latest captured count, which it holds
};

} // namespace sluice::detail

#endif
