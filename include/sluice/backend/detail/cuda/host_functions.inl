// Bodies of parts.hpp: host functions.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

#include <sluice/backend/detail/cuda/host_function_failures.hpp>
#include <sluice/backend/detail/cuda/parts.hpp>
#include <sluice/backend/detail/failure.hpp>
#include <sluice/backend/detail/stream_failures.hpp>

namespace sluice::detail {

/// A callable on its way to the runtime's thread.
class HostFunctionCall {
public:
    /// One that is used again after it has run; the steady state makes none. Those whose stream lost its device never
    /// run and never come back.
    static HostFunctionCall* take() {
        Pool& pool = Pool::instance();
        {
            const std::lock_guard lock(pool.mutex);
            if (HostFunctionCall* const call = pool.first; call != nullptr) {
                pool.first = call->next_;
                return call;
            }
        }
        return new HostFunctionCall;
    }
    static void give_back(HostFunctionCall* call) noexcept {
        call->task_ = host::Task{};
        call->stream_ = nullptr;
        Pool& pool = Pool::instance();
        const std::lock_guard lock(pool.mutex);
        call->next_ = pool.first;
        pool.first = call;
    }

    void set(host::Task task, StreamFailures::RecordRef stream) noexcept {
        task_ = std::move(task);
        stream_ = std::move(stream);
    }

    /// For the runtime. What the callable throws must not reach the driver's frames.
    static void CUDART_CB run_once(void* call) {
        auto* const self = static_cast<HostFunctionCall*>(call);
        self->run(false);
        give_back(self);
    }
    static void CUDART_CB run_again(void* call) { static_cast<HostFunctionCall*>(call)->run(true); }
    static void CUDART_CB drop(void* call) { give_back(static_cast<HostFunctionCall*>(call)); }

private:
    struct Pool {
        static Pool& instance() {
            static Pool& pool = *new Pool; // never destroyed, as above
            return pool;
        }
        std::mutex mutex;
        HostFunctionCall* first = nullptr;
    };

    void run(bool comes_again) noexcept {
        if (stream_->skips(comes_again))
            return;
        try {
            task_();
        } catch (...) {
            host_function_failures().keep(*stream_, std::current_exception());
        }
    }

    host::Task task_;
    StreamFailures::RecordRef stream_; // of the stream that it was enqueued or captured on
    HostFunctionCall* next_ = nullptr;
};

// Not cudaStreamGetId's, which breaks a capture.
inline StreamFailures::StreamId id_of_host_stream(cudaStream_t stream) noexcept { return stream; }

/// Releases a call unless it was handed on.
class OwnedHostFunction {
public:
    OwnedHostFunction(host::Task task, cudaStream_t stream) {
        StreamFailures::RecordRef record = host_function_failures().record_of(id_of_host_stream(stream));
        call_ = HostFunctionCall::take();
        call_->set(std::move(task), std::move(record));
    }
    OwnedHostFunction& operator=(OwnedHostFunction&&) = delete;
    ~OwnedHostFunction() {
        if (call_ != nullptr)
            HostFunctionCall::give_back(call_);
    }
    HostFunctionCall* get() const noexcept { return call_; }
    HostFunctionCall* give() noexcept { return std::exchange(call_, nullptr); }

private:
    HostFunctionCall* call_ = nullptr;
};

} // namespace sluice::detail

namespace sluice {

SLUICE_BODY void CudaHostFunctions::launch_host_function(cudaStream_t stream, host::Task task) {
    detail::OwnedHostFunction call(std::move(task), stream);
    SLUICE_CUDA_CHECK(cudaLaunchHostFunc(stream, &detail::HostFunctionCall::run_once, call.get()));
    (void)call.give();
}

SLUICE_BODY void CudaHostFunctions::capture_host_function(cudaStream_t stream, cudaGraph_t graph,
                                                          host::Task task) {
    detail::OwnedHostFunction call(std::move(task), stream);
    cudaUserObject_t keeper = nullptr;
    SLUICE_CUDA_CHECK(cudaUserObjectCreate(&keeper, call.get(), &detail::HostFunctionCall::drop, 1,
                                           cudaUserObjectNoDestructorSync));
    detail::HostFunctionCall* const kept = call.give();
    // From here on the call is the graph's, and its executables', until the last of them goes.
    const cudaError_t retained = cudaGraphRetainUserObject(graph, keeper, 1, cudaGraphUserObjectMove);
    if (retained != cudaSuccess)
        (void)cudaUserObjectRelease(keeper, 1);
    detail::check_cuda(retained, "cudaGraphRetainUserObject(graph, keeper, 1, cudaGraphUserObjectMove)",
                       __FILE__, __LINE__);
    SLUICE_CUDA_CHECK(cudaLaunchHostFunc(stream, &detail::HostFunctionCall::run_again, kept));
}

SLUICE_BODY bool CudaHostFunctions::any_host_failure() noexcept {
    return detail::host_function_failures().any();
}

SLUICE_BODY void CudaHostFunctions::throw_host_failure(cudaStream_t stream) {
    detail::StreamFailures& failures = detail::host_function_failures();
    if (failures.any()) [[unlikely]]
        detail::throw_failure("a host function of the stream failed: ",
                              failures.of(detail::id_of_host_stream(stream)));
}

SLUICE_BODY void CudaHostFunctions::clear_host_failure(cudaStream_t stream) noexcept {
    detail::StreamFailures& failures = detail::host_function_failures();
    if (failures.any()) [[unlikely]]
        failures.clear(detail::id_of_host_stream(stream));
}

SLUICE_BODY void CudaHostFunctions::forget_host_stream(cudaStream_t stream) noexcept {
    detail::host_function_failures().forget(detail::id_of_host_stream(stream));
}

} // namespace sluice
