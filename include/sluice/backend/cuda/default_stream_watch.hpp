/// \file
/// Whether somebody has used the legacy default stream, of whose work a capture on another stream sees nothing.
#pragma once

#include <sluice/backend/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <atomic>
#include <chrono>
#include <thread>

namespace sluice::detail {

/// From its making until `used()`, work that anybody puts on the legacy default stream is held back, for at most
/// `patience`; what is held back then shows.
///
/// The default stream waits for every blocking stream and every blocking stream waits for it, but blocking streams do
/// not wait for each other. So one blocking stream is held by a host function, and an event on a second one comes
/// through at once exactly if the default stream between them is empty. (Capturing on a blocking stream would tell as
/// well, but makes other threads' correct use of the default stream fail.)
class DefaultStreamWatch {
public:
    static constexpr std::chrono::milliseconds patience{10};

    /// Waits for what is on the default stream already.
    DefaultStreamWatch() {
        if (cudaStreamSynchronize(cudaStreamLegacy) == cudaSuccess &&
            cudaStreamCreate(&holding_) == cudaSuccess && cudaStreamCreate(&asking_) == cudaSuccess &&
            cudaEventCreateWithFlags(&passed_, cudaEventDisableTiming) == cudaSuccess) {
            watching_ = cudaLaunchHostFunc(holding_, &hold, this) == cudaSuccess;
        }
        (void)cudaGetLastError();
    }
    DefaultStreamWatch(const DefaultStreamWatch&) = delete;
    DefaultStreamWatch& operator=(const DefaultStreamWatch&) = delete;
    ~DefaultStreamWatch() {
        release();
        // The host function uses this object.
        if (watching_)
            (void)cudaStreamSynchronize(holding_);
        if (passed_ != nullptr)
            (void)cudaEventDestroy(passed_);
        if (asking_ != nullptr)
            (void)cudaStreamDestroy(asking_);
        if (holding_ != nullptr)
            (void)cudaStreamDestroy(holding_);
    }

    /// Whether something is held back, or has waited until patience ran out. Lets it go on. The calling thread must
    /// not be capturing.
    bool used() {
        if (!watching_)
            return false;
        // A call that waited for the default stream came back only because the stream was let go.
        bool found = expired_;
        if (!found && cudaEventRecord(passed_, asking_) == cudaSuccess && !expired_) {
            const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
            cudaError_t state = cudaEventQuery(passed_);
            while (state == cudaErrorNotReady && std::chrono::steady_clock::now() < limit)
                state = cudaEventQuery(passed_);
            found = state == cudaErrorNotReady;
        }
        (void)cudaGetLastError();
        release();
        return found;
    }

private:
    void release() noexcept { open_ = true; }
    static void hold(void* self) {
        auto& watch = *static_cast<DefaultStreamWatch*>(self);
        const auto limit = std::chrono::steady_clock::now() + patience;
        while (!watch.open_) {
            if (std::chrono::steady_clock::now() > limit) {
                watch.expired_ = true;
                return;
            }
            std::this_thread::yield();
        }
    }

    cudaStream_t holding_ = nullptr;
    cudaStream_t asking_ = nullptr;
    cudaEvent_t passed_ = nullptr;
    bool watching_ = false;
    std::atomic<bool> open_{false};
    std::atomic<bool> expired_{false};
};

} // namespace sluice::detail

#endif
