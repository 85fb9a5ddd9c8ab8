// Bodies of default_stream_watch.hpp.
#pragma once

#include <cstdint>

#include <sched.h>

#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/cuda/default_stream_watch.hpp>

namespace sluice::detail {

SLUICE_BODY DefaultStreamWatch::DefaultStreamWatch(int attempts)
    : patience_((1 << attempts / 2) * std::int64_t{10'000'000}) {
    watching_ = succeeded(cudaStreamSynchronize(cudaStreamLegacy)) &&
                succeeded(cudaStreamCreate(&holding_)) && succeeded(cudaStreamCreate(&asking_)) &&
                succeeded(cudaEventCreateWithFlags(&passed_, cudaEventDisableTiming)) &&
                succeeded(cudaLaunchHostFunc(holding_, &hold, this));
}

SLUICE_BODY DefaultStreamWatch::~DefaultStreamWatch() {
    open_.store(true, __ATOMIC_SEQ_CST);
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

SLUICE_BODY bool DefaultStreamWatch::used() {
    if (!watching_)
        return false;
    // A call that waited for the default stream came back only because the stream was let go.
    bool found = expired_.load(__ATOMIC_SEQ_CST);
    if (!found && succeeded(cudaEventRecord(passed_, asking_)) && !expired_.load(__ATOMIC_SEQ_CST)) {
        const std::int64_t limit = steady_nanoseconds() + patience_ / 5;
        cudaError_t state = cudaEventQuery(passed_);
        while (state == cudaErrorNotReady && steady_nanoseconds() < limit)
            state = cudaEventQuery(passed_);
        found = state == cudaErrorNotReady;
        forget_cuda_error(cudaErrorNotReady, before_); // some versions of CUDA note it as an error
    }
    open_.store(true, __ATOMIC_SEQ_CST);
    return found;
}

SLUICE_BODY bool DefaultStreamWatch::succeeded(cudaError_t error) const {
    forget_cuda_error(error, before_);
    return error == cudaSuccess;
}

SLUICE_BODY void DefaultStreamWatch::hold(void* self) {
    auto& watch = *static_cast<DefaultStreamWatch*>(self);
    const std::int64_t limit = steady_nanoseconds() + watch.patience_;
    while (!watch.open_.load(__ATOMIC_SEQ_CST)) {
        if (steady_nanoseconds() > limit) {
            watch.expired_.store(true, __ATOMIC_SEQ_CST);
            return;
        }
        sched_yield();
    }
}

} // namespace sluice::detail
