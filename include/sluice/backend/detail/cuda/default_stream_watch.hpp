/// \file
/// Whether any thread has used the legacy default stream, of whose work a capture on another stream sees nothing.
#pragma once

#include <sluice/backend/detail/atomic.hpp>
#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <cstdint>

namespace sluice::detail {

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
    DefaultStreamWatch(const DefaultStreamWatch&) = delete;
    DefaultStreamWatch& operator=(const DefaultStreamWatch&) = delete;
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
