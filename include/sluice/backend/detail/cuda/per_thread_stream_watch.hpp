/// \file
/// Whether the calling thread has used its per-thread default stream, of whose work a capture on another stream sees
/// nothing.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstddef>

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
    PerThreadStreamWatch(const PerThreadStreamWatch&) = delete;
    PerThreadStreamWatch& operator=(const PerThreadStreamWatch&) = delete;
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

} // namespace sluice::detail

#endif
