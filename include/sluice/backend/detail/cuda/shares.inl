// Bodies of parts.hpp: shares of a device.
#pragma once

#include <mutex>
#include <string>

#include <sluice/backend/detail/cuda/driver_function.hpp>
#include <sluice/backend/detail/cuda/graphs.hpp>
#include <sluice/backend/detail/list.hpp>

#define SLUICE_HAS_GREEN_CONTEXTS (CUDA_VERSION >= 12050)

namespace sluice::detail {

#if SLUICE_HAS_GREEN_CONTEXTS
template <class Function>
Function green_function(const char* name) {
    return driver_function<Function>(name, "a share of a device's multiprocessors", 12050);
}

/// The driver's green contexts, which the runtime has from CUDA 13.1 on.
struct GreenContexts {
    decltype(&cuDeviceGet) device = green_function<decltype(device)>("cuDeviceGet");
    decltype(&cuDeviceGetDevResource) whole = green_function<decltype(whole)>("cuDeviceGetDevResource");
    decltype(&cuDevSmResourceSplitByCount) split =
        green_function<decltype(split)>("cuDevSmResourceSplitByCount");
    decltype(&cuDevResourceGenerateDesc) describe =
        green_function<decltype(describe)>("cuDevResourceGenerateDesc");
    decltype(&cuGreenCtxCreate) create = green_function<decltype(create)>("cuGreenCtxCreate");
    decltype(&cuGreenCtxDestroy) destroy = green_function<decltype(destroy)>("cuGreenCtxDestroy");
    decltype(&cuGreenCtxStreamCreate) stream = green_function<decltype(stream)>("cuGreenCtxStreamCreate");
    decltype(&cuStreamGetGreenCtx) of_stream = green_function<decltype(of_stream)>("cuStreamGetGreenCtx");

    /// Throws `Error` if the driver has none.
    static const GreenContexts& get() {
        static const GreenContexts contexts;
        return contexts;
    }
    /// Null if the driver has none.
    static const GreenContexts* find() noexcept {
        static const GreenContexts* const found = []() -> const GreenContexts* {
            try {
                return &get();
            } catch (...) {
                return nullptr;
            }
        }();
        return found;
    }
};

/// The multiprocessors of the current device.
struct DeviceMultiprocessors {
    CUdevice device = 0;
    CUdevResource all{};

    DeviceMultiprocessors() {
        int current = 0;
        SLUICE_CUDA_CHECK(cudaGetDevice(&current));
        SLUICE_CUDA_CHECK(
            cudaSetDevice(current)); // A green context goes with the device's own one, which is made here.
        check_driver(GreenContexts::get().device(&device, current), "cuDeviceGet", __FILE__, __LINE__);
        check_driver(GreenContexts::get().whole(device, &all, CU_DEV_RESOURCE_TYPE_SM),
                     "cuDeviceGetDevResource", __FILE__, __LINE__);
    }
    /// `groups` of `size` at least; gives how many there can be.
    unsigned split(CUdevResource* groups, unsigned count, CUdevResource* rest, unsigned size) const {
        check_driver(GreenContexts::get().split(groups, &count, &all, rest, 0, size),
                     "cuDevSmResourceSplitByCount", __FILE__, __LINE__);
        return count;
    }
    void* context(CUdevResource* parts, unsigned count) const {
        CUdevResourceDesc description = nullptr;
        CUgreenCtx made = nullptr;
        check_driver(GreenContexts::get().describe(&description, parts, count), "cuDevResourceGenerateDesc",
                     __FILE__, __LINE__);
        check_driver(GreenContexts::get().create(&made, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
                     "cuGreenCtxCreate", __FILE__, __LINE__);
        CudaGraphs::counts().shares.add();
        return made;
    }
};

/// The streams that were made with a share: to ask the driver of one that is being captured may break the capture, as it does for
/// the device. Any thread may use it.
class SharedStreams {
public:
    static SharedStreams& instance() {
        static SharedStreams& streams =
            *new SharedStreams; // A program's last streams may go after what is static.
        return streams;
    }
    void add(cudaStream_t stream, void* share) {
        const std::lock_guard lock(mutex_);
        all_.push_back({stream, share});
    }
    void remove(cudaStream_t stream) noexcept {
        const std::lock_guard lock(mutex_);
        for (Made& made : all_) {
            if (made.stream == stream)
                return all_.erase(&made);
        }
    }
    void* share_of(cudaStream_t stream) noexcept {
        const std::lock_guard lock(mutex_);
        for (const Made& made : all_) {
            if (made.stream == stream)
                return made.share;
        }
        return nullptr;
    }

private:
    struct Made {
        cudaStream_t stream;
        void* share;
    };
    std::mutex mutex_;
    List<Made> all_;
};
#else
[[noreturn]] inline void throw_no_shares() {
    throw Error("a share of a device's multiprocessors was asked for, of a program compiled with the toolkit "
                "of CUDA " +
                std::to_string(CUDA_VERSION / 1000) + '.' + std::to_string(CUDA_VERSION % 1000 / 10) +
                "; 12.5 or later was expected");
}
#endif

} // namespace sluice::detail

namespace sluice {

SLUICE_BODY int CudaShares::multiprocessors() {
    int device = 0, count = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    SLUICE_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return count;
}

#if SLUICE_HAS_GREEN_CONTEXTS
SLUICE_BODY int CudaShares::share_unit() {
    CUdevResource smallest{};
    (void)detail::DeviceMultiprocessors().split(&smallest, 1, nullptr, 1);
    return static_cast<int>(smallest.sm.smCount);
}

SLUICE_BODY int CudaShares::create_shares(const int* counts, std::size_t count, bool with_rest,
                                          void** shares) {
    const detail::DeviceMultiprocessors device;
    // One split: parts of several could overlap. A share of several groups has them side by side.
    unsigned size = 0, sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        unsigned divisor = static_cast<unsigned>(counts[i]);
        sum += divisor;
        while (divisor != 0) {
            const unsigned rest = size % divisor;
            size = divisor;
            divisor = rest;
        }
    }
    const unsigned wanted = sum / size;
    detail::List<CUdevResource> groups(wanted);
    CUdevResource rest{};
    const unsigned made = device.split(groups.data(), wanted, &rest, size);
    if (made != wanted || groups[0].sm.smCount != size) {
        throw Error("the device makes " + detail::counted(made, "group") + " of " +
                    detail::counted(groups[0].sm.smCount, "multiprocessor") + ", where shares need " +
                    std::to_string(wanted) + " of " + std::to_string(size) +
                    "; ask for fewer, or for equal shares");
    }
    CUdevResource* next = groups.data();
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned parts = static_cast<unsigned>(counts[i]) / size;
        shares[i] = device.context(next, parts);
        next += parts;
    }
    const unsigned left = rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0;
    if (with_rest) {
        if (left == 0)
            throw Error(
                "the device's shares leave no multiprocessor for the stages that have asked for none");
        shares[count] = device.context(&rest, 1);
    }
    return static_cast<int>(left);
}

SLUICE_BODY void CudaShares::destroy_share(void* share) noexcept {
    (void)detail::GreenContexts::find()->destroy(static_cast<CUgreenCtx>(share));
    CudaGraphs::counts().shares.remove();
}

SLUICE_BODY void* CudaShares::share_of(cudaStream_t stream) noexcept {
    if (void* const known = detail::SharedStreams::instance().share_of(stream); known != nullptr)
        return known;
    CUgreenCtx share = nullptr;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
    const detail::GreenContexts* const contexts = detail::GreenContexts::find();
    const cudaError_t before = cudaPeekAtLastError();
    detail::forget_cuda_error(cudaStreamIsCapturing(stream, &capture), before);
    if (contexts == nullptr || capture != cudaStreamCaptureStatusNone ||
        contexts->of_stream(stream, &share) != CUDA_SUCCESS)
        return nullptr;
    return share;
}

SLUICE_BODY cudaStream_t CudaShares::create_stream_of(const StreamOptions& options) {
    if (options.blocking)
        throw Error("a stream was asked for that is blocking and has a share of the device; such a stream is "
                    "non-blocking");
    CUstream stream = nullptr;
    detail::check_driver(detail::GreenContexts::get().stream(&stream, static_cast<CUgreenCtx>(options.share),
                                                             CU_STREAM_NON_BLOCKING, options.priority),
                         "cuGreenCtxStreamCreate", __FILE__, __LINE__);
    detail::SharedStreams::instance().add(stream, options.share);
    return stream;
}

SLUICE_BODY void CudaShares::forget_stream(cudaStream_t stream) noexcept {
    detail::SharedStreams::instance().remove(stream);
}
#else
SLUICE_BODY int CudaShares::share_unit() { detail::throw_no_shares(); }
SLUICE_BODY int CudaShares::create_shares(const int*, std::size_t, bool, void**) {
    detail::throw_no_shares();
}
SLUICE_BODY void CudaShares::destroy_share(void*) noexcept {}
SLUICE_BODY void* CudaShares::share_of(cudaStream_t) noexcept { return nullptr; }
SLUICE_BODY cudaStream_t CudaShares::create_stream_of(const StreamOptions&) { detail::throw_no_shares(); }
SLUICE_BODY void CudaShares::forget_stream(cudaStream_t) noexcept {}
#endif

} // namespace sluice

#undef SLUICE_HAS_GREEN_CONTEXTS
