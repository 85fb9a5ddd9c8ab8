/// \file
/// Whether somebody has used the legacy default stream, of whose work a capture on another stream sees nothing.
#pragma once

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <atomic>
#include <thread>

namespace sluice::detail {

/// From its making until `used()`, work that anybody puts on the legacy default stream is held back, for at most 10 ms;
/// what is held back then shows. Where the machine is busy, or another thread frees memory, that takes longer now and then
/// than it should: so each second of several attempts waits twice as long.
///
/// The default stream waits for every blocking stream and every blocking stream waits for it, but blocking streams do
/// not wait for each other. So one blocking stream is held by a host function, and an event on a second one comes
/// through at once exactly if the default stream between them is empty. (Capturing on a blocking stream would tell as
/// well, but makes other threads' correct use of the default stream fail.)
class DefaultStreamWatch {
public:
    /// Waits for what is on the default stream already. `attempts` have been made before.
    explicit DefaultStreamWatch(int attempts)
        : patience_((1 << attempts / 2) * std::chrono::milliseconds(10)) {
        watching_ = succeeded(cudaStreamSynchronize(cudaStreamLegacy)) &&
                    succeeded(cudaStreamCreate(&holding_)) && succeeded(cudaStreamCreate(&asking_)) &&
                    succeeded(cudaEventCreateWithFlags(&passed_, cudaEventDisableTiming)) &&
                    succeeded(cudaLaunchHostFunc(holding_, &hold, this));
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
        if (!found && succeeded(cudaEventRecord(passed_, asking_)) && !expired_) {
            const auto limit = std::chrono::steady_clock::now() + patience_ / 5;
            cudaError_t state = cudaEventQuery(passed_);
            while (state == cudaErrorNotReady && std::chrono::steady_clock::now() < limit)
                state = cudaEventQuery(passed_);
            found = state == cudaErrorNotReady;
            forget_cuda_error(cudaErrorNotReady, before_); // some versions of CUDA note it as an error
        }
        release();
        return found;
    }

private:
    // Forgets a failure, and no error but that of the call.
    bool succeeded(cudaError_t error) const {
        forget_cuda_error(error, before_);
        return error == cudaSuccess;
    }
    void release() noexcept { open_ = true; }
    static void hold(void* self) {
        auto& watch = *static_cast<DefaultStreamWatch*>(self);
        const auto limit = std::chrono::steady_clock::now() + watch.patience_;
        while (!watch.open_) {
            if (std::chrono::steady_clock::now() > limit) {
                watch.expired_ = true;
                return;
            }
            std::this_thread::yield();
        }
    }

    cudaError_t before_ = cudaPeekAtLastError();
    std::chrono::milliseconds patience_;
    cudaStream_t holding_ = nullptr;
    cudaStream_t asking_ = nullptr;
    cudaEvent_t passed_ = nullptr;
    bool watching_ = false;
    std::atomic<bool> open_{false};
    std::atomic<bool> expired_{false};
};

} // namespace sluice::detail

#endif
