// Whether a default stream has been used, the legacy one or the calling thread's own, of whose work a capture on another stream sees
// nothing.
#pragma once

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>
#include <cstdint>

namespace sluice::detail {

/// From its making until `used()`, work that the calling thread puts on `cudaStreamPerThread` is captured, and so does
/// not run; what was captured then shows. Made and destroyed by one thread.
///
/// Meanwhile the driver refuses the legacy default stream to every thread of the program, since the per-thread stream
/// is a blocking one.
class PerThreadStreamWatch {
public:
    PerThreadStreamWatch() {
        // Where that stream is being captured already, that capture does the check.
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        // Relaxed, so that this capture forbids the thread nothing that the one being watched for allows.
        watching_ = succeeded(cudaStreamIsCapturing(cudaStreamPerThread, &status)) &&
                    status == cudaStreamCaptureStatusNone &&
                    succeeded(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
    }
    PerThreadStreamWatch& operator=(PerThreadStreamWatch&&) = delete;
    ~PerThreadStreamWatch() { (void)used(); }

    /// Whether something was put on the stream. Ends the watch; later calls say false.
    bool used() noexcept {
        if (!watching_)
            return false;
        watching_ = false;
        cudaGraph_t graph = nullptr;
        std::size_t nodes = 0;
        // A capture that has become invalid has been used too: by a wait for the stream, say.
        const bool found = !succeeded(cudaStreamEndCapture(cudaStreamPerThread, &graph)) ||
                           !succeeded(cudaGraphGetNodes(graph, nullptr, &nodes)) || nodes > 0;
        if (graph != nullptr)
            (void)cudaGraphDestroy(graph);
        return found;
    }

private:
    // Forgets a failure, and no error but that of the call.
    bool succeeded(cudaError_t error) const noexcept {
        forget_cuda_error(error, before_);
        return error == cudaSuccess;
    }

    cudaError_t before_ = cudaPeekAtLastError();
    bool watching_ = false;
};

/// From its making until `used()`, work that any thread puts on the legacy default stream is held back, for at most 10 ms;
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
    explicit DefaultStreamWatch(int attempts);
    DefaultStreamWatch& operator=(DefaultStreamWatch&&) = delete;
    ~DefaultStreamWatch();

    /// Whether something is held back, or has waited until patience ran out. Lets it go on. The calling thread must
    /// not be capturing.
    bool used();

private:
    // Forgets a failure, and no error but that of the call.
    bool succeeded(cudaError_t error) const;
    static void hold(void* self);

    cudaError_t before_ = cudaPeekAtLastError();
    std::int64_t patience_; // nanoseconds
    cudaStream_t holding_ = nullptr;
    cudaStream_t asking_ = nullptr;
    cudaEvent_t passed_ = nullptr;
    bool watching_ = false;
    Atomic<bool> open_;
    Atomic<bool> expired_;
};

} // namespace sluice::detail

#endif
