/// \file
/// Host functions in the order of CUDA streams.
#pragma once

#include <sluice/backend/detail/cuda/error.hpp>

#if SLUICE_HAS_CUDA

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <sluice/backend/detail/failure.hpp>
#include <sluice/backend/detail/host/task.hpp>

namespace sluice::detail {

/// What host functions have thrown, by the stream that they were enqueued on, until it is cleared or destroyed. Any
/// thread may use it.
class HostFunctionFailures {
public:
    using StreamId = const void*;

    /// The program's. Never destroyed: a host function may run after anything else.
    static HostFunctionFailures& instance() {
        static HostFunctionFailures& failures = *new HostFunctionFailures;
        return failures;
    }

    /// Whether there is one at all: all that most calls ask.
    bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    /// Keeps what a function threw, unless the stream has failed already.
    void keep(StreamId stream, std::exception_ptr thrown) {
        const std::lock_guard lock(mutex_);
        if (find(stream) != failures_.end())
            return;
        failures_.push_back({stream, std::move(thrown)});
        count_.store(failures_.size(), std::memory_order_release);
    }
    /// What the stream has failed with; null if it has not.
    std::exception_ptr of(StreamId stream) {
        const std::lock_guard lock(mutex_);
        const auto failure = find(stream);
        return failure == failures_.end() ? nullptr : failure->thrown;
    }
    void clear(StreamId stream) {
        std::exception_ptr former; // goes after the lock
        const std::lock_guard lock(mutex_);
        const auto failure = find(stream);
        if (failure == failures_.end())
            return;
        former.swap(failure->thrown);
        failures_.erase(failure);
        count_.store(failures_.size(), std::memory_order_release);
    }

private:
    struct Failure {
        StreamId stream;
        std::exception_ptr thrown;
    };
    std::vector<Failure>::iterator find(StreamId stream) {
        auto failure = failures_.begin();
        while (failure != failures_.end() && failure->stream != stream)
            ++failure;
        return failure;
    }

    std::mutex mutex_;
    std::vector<Failure> failures_;
    std::atomic<std::size_t> count_{0};
};

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
        Pool& pool = Pool::instance();
        const std::lock_guard lock(pool.mutex);
        call->next_ = pool.first;
        pool.first = call;
    }

    void set(host::Task task, HostFunctionFailures::StreamId stream) noexcept {
        task_ = std::move(task);
        stream_ = stream;
    }

    /// For the runtime. What the callable throws must not reach the driver's frames.
    static void CUDART_CB run_once(void* call) {
        auto* const self = static_cast<HostFunctionCall*>(call);
        self->run();
        give_back(self);
    }
    static void CUDART_CB run_again(void* call) { static_cast<HostFunctionCall*>(call)->run(); }
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

    void run() noexcept {
        HostFunctionFailures& failures = HostFunctionFailures::instance();
        if (failures.any() && failures.of(stream_) != nullptr)
            return;
        try {
            task_();
        } catch (...) {
            failures.keep(stream_, std::current_exception());
        }
    }

    host::Task task_;
    HostFunctionFailures::StreamId stream_ = nullptr;
    HostFunctionCall* next_ = nullptr;
};

} // namespace sluice::detail

namespace sluice {

/// The part of `Cuda` that runs host functions.
struct CudaHostFunctions {
protected:
    static void launch_host_function(cudaStream_t stream, host::Task task) {
        OwnedCall call = taken(stream, std::move(task));
        SLUICE_CUDA_CHECK(cudaLaunchHostFunc(stream, &detail::HostFunctionCall::run_once, call.get()));
        (void)call.release();
    }
    // `graph` is the one that `stream` is being captured into.
    static void capture_host_function(cudaStream_t stream, cudaGraph_t graph, host::Task task) {
        OwnedCall call = taken(stream, std::move(task));
        cudaUserObject_t keeper = nullptr;
        SLUICE_CUDA_CHECK(cudaUserObjectCreate(&keeper, call.get(), &detail::HostFunctionCall::drop, 1,
                                               cudaUserObjectNoDestructorSync));
        detail::HostFunctionCall* const kept = call.release();
        // From here on the call is the graph's, and its executables', until the last of them goes.
        const cudaError_t retained = cudaGraphRetainUserObject(graph, keeper, 1, cudaGraphUserObjectMove);
        if (retained != cudaSuccess)
            (void)cudaUserObjectRelease(keeper, 1);
        detail::check_cuda(retained, "cudaGraphRetainUserObject(graph, keeper, 1, cudaGraphUserObjectMove)",
                           __FILE__, __LINE__);
        SLUICE_CUDA_CHECK(cudaLaunchHostFunc(stream, &detail::HostFunctionCall::run_again, kept));
    }
    static bool any_host_failure() noexcept { return detail::HostFunctionFailures::instance().any(); }
    static void throw_host_failure(cudaStream_t stream) {
        detail::HostFunctionFailures& failures = detail::HostFunctionFailures::instance();
        if (failures.any()) [[unlikely]]
            detail::throw_failure("a host function of the stream failed: ", failures.of(id_of(stream)));
    }
    static void clear_host_failure(cudaStream_t stream) noexcept {
        detail::HostFunctionFailures& failures = detail::HostFunctionFailures::instance();
        if (failures.any()) [[unlikely]]
            failures.clear(id_of(stream));
    }

private:
    struct GiveBack {
        void operator()(detail::HostFunctionCall* call) const noexcept {
            detail::HostFunctionCall::give_back(call);
        }
    };
    using OwnedCall = std::unique_ptr<detail::HostFunctionCall, GiveBack>;

    static OwnedCall taken(cudaStream_t stream, host::Task task) {
        OwnedCall call(detail::HostFunctionCall::take());
        call->set(std::move(task), id_of(stream));
        return call;
    }
    // Not cudaStreamGetId's, which breaks a capture.
    static detail::HostFunctionFailures::StreamId id_of(cudaStream_t stream) noexcept { return stream; }
};

} // namespace sluice

#endif
