// Bodies of parts.hpp: semaphores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <sluice/backend/detail/cuda/driver_function.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice::detail {

/// A counter in host memory that devices see.
struct CudaSemaphoreState {
    std::uint32_t* counter = nullptr;
    CUdeviceptr address = 0; // the same, for the devices
    bool given_up = false;
};

/// The driver's operations on memory in stream order, which the runtime does not have.
struct StreamMemoryOperations {
    decltype(&cuStreamWriteValue32) write = nullptr;
    decltype(&cuStreamWaitValue32) wait = nullptr;

    /// Throws `Error` if the driver has none.
    static const StreamMemoryOperations& get() {
        static const StreamMemoryOperations operations{
            driver_function<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32", "a semaphore"),
            driver_function<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32", "a semaphore")};
        return operations;
    }
};

/// The program's counters. They are used again and never freed: freeing pinned memory may wait for the device, and with
/// it for a stream that waits for a semaphore. Any thread may use it.
class CudaSemaphorePool {
public:
    static CudaSemaphorePool& instance() {
        static CudaSemaphorePool& pool = *new CudaSemaphorePool;
        return pool;
    }

    /// Throws `Error`.
    CudaSemaphoreState* take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty())
            grow();
        CudaSemaphoreState* const state = free_.back();
        free_.pop_back();
        return state;
    }
    void give_back(CudaSemaphoreState* state) noexcept {
        const std::lock_guard lock(mutex_);
        if (!state->given_up)
            free_.push_back(state); // there is room for all
    }

private:
    static constexpr std::size_t spacing = 128; // bytes: nothing else lies in a counter's cache line
    static constexpr std::size_t page = 4096;

    void grow() {
        blocks_.reserve(blocks_.size() + 1);
        free_.reserve((blocks_.size() + 1) * (page / spacing));
        List<CudaSemaphoreState> states(page / spacing);
        void* memory = nullptr;
        void* address = nullptr;
        SLUICE_CUDA_CHECK(cudaHostAlloc(&memory, page, cudaHostAllocPortable | cudaHostAllocMapped));
        const cudaError_t error = cudaHostGetDevicePointer(&address, memory, 0);
        if (error != cudaSuccess)
            (void)cudaFreeHost(memory);
        check_cuda(error, "cudaHostGetDevicePointer(&address, memory, 0)", __FILE__, __LINE__);
        for (std::size_t i = 0; i < page / spacing; ++i) {
            states[i].counter =
                reinterpret_cast<std::uint32_t*>(static_cast<std::byte*>(memory) + i * spacing);
            states[i].address = reinterpret_cast<CUdeviceptr>(address) + i * spacing;
            free_.push_back(&states[i]);
        }
        blocks_.push_back(static_cast<List<CudaSemaphoreState>&&>(states)); // none of them moves
    }

    std::mutex mutex_;
    List<List<CudaSemaphoreState>> blocks_;
    List<CudaSemaphoreState*> free_;
};

inline std::atomic_ref<std::uint32_t> counter_of(CudaSemaphoreState* semaphore) noexcept {
    return std::atomic_ref<std::uint32_t>(*semaphore->counter);
}

} // namespace sluice::detail

namespace sluice {

SLUICE_BODY CudaSemaphores::NativeSemaphore CudaSemaphores::make_semaphore() {
    (void)detail::StreamMemoryOperations::get(); // before anything is made
    const NativeSemaphore semaphore = detail::CudaSemaphorePool::instance().take();
    detail::counter_of(semaphore).store(0);
    return semaphore;
}

SLUICE_BODY void CudaSemaphores::drop_semaphore(NativeSemaphore semaphore) noexcept {
    detail::CudaSemaphorePool::instance().give_back(semaphore);
}

SLUICE_BODY void CudaSemaphores::write_on(cudaStream_t stream, NativeSemaphore semaphore,
                                          std::uint32_t value) {
    // By default the write comes behind a barrier: a reader that sees it sees what came before.
    detail::check_driver(detail::StreamMemoryOperations::get().write(stream, semaphore->address, value,
                                                                     CU_STREAM_WRITE_VALUE_DEFAULT),
                         "cuStreamWriteValue32", __FILE__, __LINE__);
}

SLUICE_BODY void CudaSemaphores::wait_on(cudaStream_t stream, NativeSemaphore semaphore,
                                         std::uint32_t value) {
    detail::check_driver(detail::StreamMemoryOperations::get().wait(stream, semaphore->address, value,
                                                                    CU_STREAM_WAIT_VALUE_GEQ),
                         "cuStreamWaitValue32", __FILE__, __LINE__);
}

SLUICE_BODY void CudaSemaphores::signal_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept {
    detail::counter_of(semaphore).store(value, std::memory_order_release);
}

SLUICE_BODY std::uint32_t CudaSemaphores::semaphore_value(NativeSemaphore semaphore) noexcept {
    return detail::counter_of(semaphore).load(std::memory_order_acquire);
}

SLUICE_BODY std::uint32_t CudaSemaphores::look_at_semaphore(NativeSemaphore semaphore) noexcept {
    return semaphore_value(semaphore);
}

SLUICE_BODY void CudaSemaphores::fail_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept {
    semaphore->given_up = true;
    signal_semaphore(semaphore, value);
}

SLUICE_BODY void CudaSemaphores::reset_semaphore(NativeSemaphore semaphore) noexcept {
    signal_semaphore(semaphore, 0);
}

} // namespace sluice
