// Bodies of ring_copies.hpp.
#pragma once

#include <mutex>
#include <string>

#include <sluice/backend/detail/cuda/driver_function.hpp>
#include <sluice/backend/detail/cuda/ring_copies.hpp>
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
    decltype(&cuLaunchKernel) launch = driver_function<decltype(&cuLaunchKernel)>("cuLaunchKernel", user);

    static constexpr unsigned threads = 128; // as the source says

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

    // As RingCopy::operator(), by one block: four bytes at a time where all is aligned to them.
    static constexpr const char* source = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry sluice_copy_to_ring(.param .u64 row, .param .u64 from, .param .u64 length, .param .u32 depth,
                                    .param .u32 stride, .param .u32 bytes)
{
    .reg .pred %p;
    .reg .u64 %row, %from, %length, %place, %to, %a, %b, %wide;
    .reg .u32 %count, %depth, %stride, %bytes, %i, %at, %value, %low;
    ld.param.u64 %row, [row];
    ld.param.u64 %from, [from];
    ld.param.u64 %length, [length];
    ld.param.u32 %depth, [depth];
    ld.param.u32 %stride, [stride];
    ld.param.u32 %bytes, [bytes];
    cvta.to.global.u64 %row, %row;
    cvta.to.global.u64 %from, %from;
    ld.volatile.global.u32 %count, [%row];
    bar.sync 0;
    rem.u32 %at, %count, %depth;
    mad.wide.u32 %place, %at, %stride, %row;
    add.u64 %place, %place, 64;
    add.u64 %to, %place, 64;
    mov.u32 %i, %tid.x;
    cvt.u32.u64 %low, %from;
    or.b32 %low, %low, %bytes;
    and.b32 %low, %low, 3;
    setp.ne.u32 %p, %low, 0;
    @%p bra BYTES;
    shl.b32 %i, %i, 2;
WORDS:
    setp.ge.u32 %p, %i, %bytes;
    @%p bra COPIED;
    cvt.u64.u32 %wide, %i;
    add.u64 %a, %from, %wide;
    add.u64 %b, %to, %wide;
    ld.global.u32 %value, [%a];
    st.global.u32 [%b], %value;
    add.u32 %i, %i, 512;
    bra WORDS;
BYTES:
    setp.ge.u32 %p, %i, %bytes;
    @%p bra COPIED;
    cvt.u64.u32 %wide, %i;
    add.u64 %a, %from, %wide;
    add.u64 %b, %to, %wide;
    ld.global.u8 %value, [%a];
    st.global.u8 [%b], %value;
    add.u32 %i, %i, 128;
    bra BYTES;
COPIED:
    mov.u32 %i, %tid.x;
    setp.ne.u32 %p, %i, 0;
    @%p bra END;
    setp.eq.u64 %p, %length, 0;
    @%p bra COUNT;
    cvta.to.global.u64 %length, %length;
    ld.global.u64 %wide, [%length];
    st.global.u64 [%place], %wide;
COUNT:
    add.u32 %count, %count, 1;
    st.volatile.global.u32 [%row], %count;
END:
    ret;
}
)";

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
    detail::RingCopy given = copy;
    void* arguments[] = {&given.row, &given.from, &given.length, &given.depth, &given.stride, &given.bytes};
    detail::check_driver(kernels.launch(kernels.of_current_device(false), 1, 1, 1, kernels.threads, 1, 1, 0,
                                        stream, arguments, nullptr),
                         "cuLaunchKernel", __FILE__, __LINE__);
}

} // namespace sluice
