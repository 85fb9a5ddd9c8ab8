// Bodies of default_stream_watch.hpp.
#pragma once

#include <cstdint>
#include <thread>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/cuda/default_stream_watch.hpp>

namespace sluice::detail {

SLUICE_BODY DefaultStreamWatch::DefaultStreamWatch(int attempts)
    : patience_((1 << attempts / 2) * std::int64_t{10'000'000}) {
    watching_ = succeeded(cudaStreamSynchronize(cudaStreamLegacy)) && succeeded(cudaStreamCreate(&asking_)) &&
                succeeded(cudaEventCreateWithFlags(&passed_, cudaEventDisableTiming)) &&
                succeeded(cudaStreamCreate(&own_.stream));
    if (watching_ && attempts > 0) {
        watching_ = succeeded(cudaStreamCreate(&others_.stream)) && close(others_);
        std::this_thread::sleep_for(std::chrono::nanoseconds(patience_ / 10));
    }
    watching_ = watching_ && close(own_);
}

SLUICE_BODY DefaultStreamWatch::~DefaultStreamWatch() {
    destroy(others_);
    destroy(own_);
    if (passed_ != nullptr)
        (void)cudaEventDestroy(passed_);
    if (asking_ != nullptr)
        (void)cudaStreamDestroy(asking_);
}

SLUICE_BODY bool DefaultStreamWatch::used() {
    if (!watching_)
        return false;
    // A call that waited for the default stream came back only because the stream was let go.
    bool found = expired_;
    if (!found && succeeded(cudaEventRecord(passed_, asking_)) && !expired_) {
        others_.open = true;
        std::int64_t limit = steady_nanoseconds() + patience_;
        bool reached = false; // What others have put before the second gate is done.
        cudaError_t state = cudaEventQuery(passed_);
        for (; state == cudaErrorNotReady && steady_nanoseconds() < limit; state = cudaEventQuery(passed_)) {
            if (!reached && own_.reached) {
                reached = true;
                limit = steady_nanoseconds() + patience_ / 5;
            }
        }
        found = state == cudaErrorNotReady;
        forget_cuda_error(cudaErrorNotReady, before_); // some versions of CUDA note it as an error
    }
    others_.open = true;
    own_.open = true;
    return found;
}

SLUICE_BODY bool DefaultStreamWatch::succeeded(cudaError_t error) const {
    forget_cuda_error(error, before_);
    return error == cudaSuccess;
}

SLUICE_BODY bool DefaultStreamWatch::close(Gate& gate) {
    gate.watch = this;
    return succeeded(cudaLaunchHostFunc(gate.stream, &hold, &gate));
}

SLUICE_BODY void DefaultStreamWatch::destroy(Gate& gate) const {
    gate.open = true;
    if (gate.stream == nullptr)
        return;
    // The host function uses this object.
    (void)cudaStreamSynchronize(gate.stream);
    (void)cudaStreamDestroy(gate.stream);
}

SLUICE_BODY void DefaultStreamWatch::hold(void* of) {
    auto& gate = *static_cast<Gate*>(of);
    gate.reached = true;
    const std::int64_t limit = steady_nanoseconds() + gate.watch->patience_;
    while (!gate.open) {
        if (steady_nanoseconds() > limit) {
            gate.watch->expired_ = true;
            return;
        }
        std::this_thread::yield();
    }
}

} // namespace sluice::detail
