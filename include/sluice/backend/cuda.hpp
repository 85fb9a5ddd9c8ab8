/// \file
/// The Cuda backend: the CUDA runtime, with every result checked.
#pragma once

#include <sluice/backend/config.hpp>

#if SLUICE_HAS_CUDA

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <sluice/backend/detail/copies.hpp>
#include <sluice/backend/detail/cuda/graphs.hpp>
#include <sluice/backend/detail/cuda/parts.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/types.hpp>
#if SLUICE_CHECKED
#include <sluice/backend/checked.hpp>
#endif

namespace sluice {

/// `cudaStream_t`, `cudaEvent_t` and the runtime's memory. See the concept `Backend` for what each function
/// does. Written for CUDA 12.0 and later.
struct UncheckedCuda : CudaGraphs, CudaHostFunctions, CudaSemaphores, CudaRingCopies, CudaShares {
    using NativeStream = cudaStream_t; ///< A stream's handle.
    using NativeEvent = cudaEvent_t;   ///< An event's handle.

    /// What messages and reports call the backend.
    static constexpr const char* name = "cuda";

    /// \name Devices
    /// @{

    /// Does what the concept `Backend` says of devices.
    static int device_count();
    static int current_device();
    static void set_device(int device);
    static std::string device_name(int device);
    static PriorityRange priorities();

    /// Lets work on `device` reach the memory of `peer` where the machine can; copies between them work in any case.
    static void enable_peer_access(int device, int peer) noexcept;
    /// @}

    /// \name Streams
    /// @{

    /// Does what the concept `Backend` says of streams.
    static NativeStream create_stream(const StreamOptions& options);
    static void destroy_stream(NativeStream stream) noexcept;
    static void synchronize_stream(NativeStream stream);
    static bool stream_done(NativeStream stream);
    static int device_of(NativeStream stream);
    /// Whether the stream waits for the legacy default stream, and that for it.
    static bool is_blocking(NativeStream stream);
    static int priority_of(NativeStream stream);

    /// Runs `callable` on a thread of the runtime's when the stream gets there; see `BasicStreamRef::enqueue`.
    template <class F>
    static void enqueue(NativeStream stream, F&& callable) {
        host::Task task{std::forward<F>(callable)};
        const bool captured = is_capturing(stream);
        if (captured) {
            capture_host_function(stream, capturing_graph(stream), std::move(task));
        } else {
            launch_host_function(stream, std::move(task));
        }
        // Not asked of the stream again: who saw what the callable did may have destroyed it.
        note_operation(captured);
    }
    /// @}

    /// \name Events
    /// @{

    /// Does what the concept `Backend` says of events.
    static NativeEvent create_event(const EventOptions& options);
    static void destroy_event(NativeEvent event) noexcept;
    static void record(NativeEvent event, NativeStream stream);
    static void wait(NativeStream stream, NativeEvent event);
    static void synchronize_event(NativeEvent event);
    static bool event_done(NativeEvent event);
    static float elapsed_milliseconds(NativeEvent start, NativeEvent stop);
    /// @}

    /// \name Semaphores
    /// @{

    using CudaSemaphores::signal_semaphore;
    /// Does what the concept `SemaphoreBackend` says.
    static NativeSemaphore create_semaphore();
    static void destroy_semaphore(NativeSemaphore semaphore) noexcept;
    static void signal_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value);
    static void wait_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value);
    /// @}

    /// As `detail::RingCopy`, in the order of `stream`.
    static void copy_to_ring(NativeStream stream, const detail::RingCopy& copy);
    /// The same to one place, by a kernel, unless a plain copy has to do it: then it gives false.
    static bool copy_to_place(NativeStream stream, const detail::RingCopy& copy);
    /// As `detail::RowsCopy`, in the order of `stream`.
    static void copy_rows(const detail::RowsCopy& copy, CopyKind kind, NativeStream stream);

    /// \name Memory
    /// @{

    /// Does what the concepts `Backend` and `FillBackend` say of memory. Sizes are in bytes.
    static void* allocate_device(std::size_t bytes);
    static void* allocate_device(std::size_t bytes, NativeStream stream);
    static void free_device(void* memory) noexcept;
    static void free_device(void* memory, NativeStream stream) noexcept;
    static void* allocate_pinned(std::size_t bytes, const PinnedOptions& options = {});
    static void free_pinned(void* memory) noexcept;
    /// Does what the concept `MemoryUseBackend` says.
    static std::size_t device_memory_in_use();
    static void copy(void* to, const void* from, std::size_t bytes, CopyKind kind, NativeStream stream);
    static void fill_bytes(void* memory, int value, std::size_t bytes, NativeStream stream);
    static void fill_elements(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                              std::size_t count, NativeStream stream);
    /// @}

    /// \name Faults
    /// @{

    /// Does what the concept `Backend` says of faults.
    static void check_launches();
    // A faulted device makes every later call of the runtime fail, so only host functions are asked for.
    static void throw_if_failed(NativeStream stream);
    /// Whether it is worth the while to ask any stream.
    static bool any_failed() noexcept;
    static void clear_failure(NativeStream stream) noexcept;
    /// @}

private:
    // For the guard of a capture that this thread may be making.
    static void note_operation(NativeStream stream);
    static void note_operation(bool captured) noexcept;
    // Some versions of CUDA note cudaErrorNotReady as the last error and others do not: then the last error is one
    // that the caller's own call left, `before` the query.
    static bool ready(cudaError_t state, cudaError_t before, const char* call, int line);
    template <class Allocate>
    static cudaError_t allocate_or_free_kept(const Allocate& allocate);
    static void check_allocation(cudaError_t error, const char* call, std::size_t bytes, int line);
};

/// The backend of NVIDIA's GPUs: `UncheckedCuda`, or the same under `Checked` where the program is compiled with
/// `-DSLUICE_CHECKED=1`.
#if SLUICE_CHECKED
struct Cuda : Checked<UncheckedCuda> {};
#else
struct Cuda : UncheckedCuda {};
#endif

} // namespace sluice

#if SLUICE_HAS_CUDA_BODIES
#include <sluice/backend/detail/cuda/backend.inl>
#endif

#endif
