// Bodies of parts.hpp: copies into rings.
#pragma once

#include <mutex>

#include <sluice/backend/detail/cuda/driver_function.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice::detail {

/// The kernel, loaded once a device and never unloaded, since graphs may hold it. As source for the driver: who includes this may
/// not be compiled by nvcc.
class RingCopyKernels {
public:
    static RingCopyKernels& instance() {
        static RingCopyKernels& kernels = *new RingCopyKernels;
        return kernels;
    }

    /// Null where it cannot be had.
    CUfunction of_current_device(bool load) {
        int device = 0;
        SLUICE_CUDA_CHECK(cudaGetDevice(&device));
        const std::lock_guard lock(mutex_);
        const auto index = static_cast<std::size_t>(device);
        if (load && loaded_.size() <= index)
            loaded_.resize(index + 1);
        if (load && !loaded_[index].tried) {
            loaded_[index].tried = true;
            loaded_[index].kernel = loaded();
        }
        return index < loaded_.size() ? loaded_[index].kernel : nullptr;
    }
    CUresult launch(CUfunction kernel, cudaStream_t stream, RingCopy copy) const {
        void* arguments[] = {&copy.row, &copy.from, &copy.length, &copy.depth, &copy.stride, &copy.bytes};
        return launch_(kernel, 1, 1, 1, 128, 1, 1, 0, stream, arguments,
                       nullptr); // threads as the source says
    }
    /// Whether a kernel of the current device reads `memory`, which a copy would take from anywhere.
    bool reaches(const void* memory) const {
        if (devices_ == 1)
            return true;
        cudaPointerAttributes of{};
        int device = 0;
        SLUICE_CUDA_CHECK(cudaPointerGetAttributes(&of, memory));
        SLUICE_CUDA_CHECK(cudaGetDevice(&device));
        return of.type == cudaMemoryTypeDevice && of.device == device;
    }

private:
    struct Loaded {
        bool tried = false;
        CUfunction kernel = nullptr;
    };
    static constexpr const char* user = "a readback";

    static CUfunction loaded() {
        // Makes the device's context current, which the driver's functions need.
        SLUICE_CUDA_CHECK(cudaFree(nullptr));
        const auto load = driver_function<decltype(&cuModuleLoadData)>("cuModuleLoadData", user);
        const auto find = driver_function<decltype(&cuModuleGetFunction)>("cuModuleGetFunction", user);
        CUmodule module = nullptr;
        CUfunction kernel = nullptr;
        check_driver(load(&module, source), "cuModuleLoadData", __FILE__, __LINE__);
        check_driver(find(&kernel, module, "sluice_copy_to_ring"), "cuModuleGetFunction", __FILE__, __LINE__);
        return kernel;
    }

    // As RingCopy::operator(), by one block: four bytes at a time where all is aligned to them. A depth of 0 stands for a place
    // without a counter. What is on the device is asked for before the counter, which is in the host's memory.
    static constexpr const char* source = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry sluice_copy_to_ring(.param .u64 row, .param .u64 from, .param .u64 length, .param .u32 depth,
                                    .param .u32 stride, .param .u32 bytes)
{
    .reg .pred %p, %more, %word, %byte, %counts, %first, %counted;
    .reg .u64 %row, %from, %length, %place, %to, %a, %b, %wide, %number;
    .reg .u32 %count, %depth, %stride, %bytes, %i, %at, %value, %low, %step;
    ld.param.u64 %row, [row];
    ld.param.u64 %from, [from];
    ld.param.u64 %length, [length];
    ld.param.u32 %depth, [depth];
    ld.param.u32 %stride, [stride];
    ld.param.u32 %bytes, [bytes];
    cvta.to.global.u64 %row, %row;
    cvta.to.global.u64 %from, %from;
    mov.u32 %i, %tid.x;
    setp.eq.u32 %first, %i, 0;
    setp.ne.and.u64 %counted, %length, 0, %first;
    setp.ne.u32 %counts, %depth, 0;
    mov.u64 %number, 0;
    mov.u32 %value, 0;
    mov.u32 %count, 0;
    mov.u64 %place, %row;
    cvta.to.global.u64 %length, %length;
    @%counted ld.global.u64 %number, [%length];
    cvt.u32.u64 %low, %from;
    or.b32 %low, %low, %bytes;
    and.b32 %low, %low, 3;
    setp.ne.u32 %p, %low, 0;
    mov.u32 %step, 128;
    @!%p mov.u32 %step, 512;
    @!%p shl.b32 %i, %i, 2;
    setp.lt.u32 %more, %i, %bytes;
    cvt.u64.u32 %wide, %i;
    add.u64 %a, %from, %wide;
    and.pred %byte, %more, %p;
    xor.pred %word, %more, %byte;
    @%word ld.global.u32 %value, [%a];
    @%byte ld.global.u8 %value, [%a];
    @!%counts bra PLACED;
    ld.volatile.global.u32 %count, [%row];
    bar.sync 0;
    rem.u32 %at, %count, %depth;
    mad.wide.u32 %place, %at, %stride, %row;
    add.u64 %place, %place, 64;
PLACED:
    add.u64 %to, %place, 64;
    @!%more bra COPIED;
    @%p bra BYTES;
WORDS:
    cvt.u64.u32 %wide, %i;
    add.u64 %b, %to, %wide;
    st.global.u32 [%b], %value;
    add.u32 %i, %i, %step;
    setp.ge.u32 %p, %i, %bytes;
    @%p bra COPIED;
    cvt.u64.u32 %wide, %i;
    add.u64 %a, %from, %wide;
    ld.global.u32 %value, [%a];
    bra WORDS;
BYTES:
    cvt.u64.u32 %wide, %i;
    add.u64 %b, %to, %wide;
    st.global.u8 [%b], %value;
    add.u32 %i, %i, %step;
    setp.ge.u32 %p, %i, %bytes;
    @%p bra COPIED;
    cvt.u64.u32 %wide, %i;
    add.u64 %a, %from, %wide;
    ld.global.u8 %value, [%a];
    bra BYTES;
COPIED:
    @%counted st.global.u64 [%place], %number;
    and.pred %first, %first, %counts;
    @!%first bra END;
    add.u32 %count, %count, 1;
    st.volatile.global.u32 [%row], %count;
END:
    ret;
}
)";

    decltype(&cuLaunchKernel) launch_ = driver_function<decltype(&cuLaunchKernel)>("cuLaunchKernel", user);
    int devices_ = UncheckedCuda::device_count();
    std::mutex mutex_;
    List<Loaded> loaded_;
};

} // namespace sluice::detail

namespace sluice {

SLUICE_BODY bool CudaRingCopies::has_ring_copies(bool load) noexcept {
    try {
        return detail::RingCopyKernels::instance().of_current_device(load) != nullptr;
    } catch (const Error&) {
        return false; // A driver that has no compiler, for instance.
    }
}

SLUICE_BODY void CudaRingCopies::launch_ring_copy(cudaStream_t stream, const detail::RingCopy& copy) {
    auto& kernels = detail::RingCopyKernels::instance();
    detail::check_driver(kernels.launch(kernels.of_current_device(false), stream, copy), "cuLaunchKernel",
                         __FILE__, __LINE__);
}

SLUICE_BODY bool CudaRingCopies::launch_small_copy(cudaStream_t stream, const detail::RingCopy& copy) {
    // More takes the one block longer than the copy engine takes to begin. A stream of 0 may be the thread's or the process's, which
    // the driver does not know.
    constexpr std::uint32_t most = 1024;
    if (copy.bytes > most || stream == nullptr || !has_ring_copies(false))
        return false;
    auto& kernels = detail::RingCopyKernels::instance();
    if (!kernels.reaches(copy.from) || (copy.length != nullptr && !kernels.reaches(copy.length)))
        return false;
    const CUresult result = kernels.launch(kernels.of_current_device(false), stream, copy);
    if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_CONTEXT)
        return false; // A stream of another device's or context's.
    detail::check_driver(result, "cuLaunchKernel", __FILE__, __LINE__);
    return true;
}

} // namespace sluice
