// Bodies of cuda.hpp.
#pragma once

#include <cstring>
#include <string>

#include <sluice/backend/cuda.hpp>
#include <sluice/backend/detail/cuda/fills.hpp>
#include <sluice/backend/detail/cuda/graphs.inl>
#include <sluice/backend/detail/cuda/host_functions.inl>
#include <sluice/backend/detail/cuda/ring_copies.inl>
#include <sluice/backend/detail/cuda/semaphore.inl>
#include <sluice/backend/detail/cuda/shares.inl>
#include <sluice/backend/detail/deferred_frees.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>

namespace sluice {

SLUICE_BODY int UncheckedCuda::device_count() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver) {
        detail::forget_cuda_error(error);
        return 0;
    }
    detail::check_cuda(error, "cudaGetDeviceCount(&count)", __FILE__, __LINE__);
    return count;
}

SLUICE_BODY int UncheckedCuda::current_device() {
    int device = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&device));
    return device;
}

SLUICE_BODY void UncheckedCuda::set_device(int device) { SLUICE_CUDA_CHECK(cudaSetDevice(device)); }

SLUICE_BODY std::string UncheckedCuda::device_name(int device) {
    cudaDeviceProp properties{};
    SLUICE_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    return properties.name;
}

SLUICE_BODY PriorityRange UncheckedCuda::priorities() {
    PriorityRange range;
    SLUICE_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&range.least, &range.greatest));
    return range;
}

SLUICE_BODY void UncheckedCuda::enable_peer_access(int device, int peer) noexcept {
    int possible = 0;
    if (cudaDeviceCanAccessPeer(&possible, device, peer) != cudaSuccess || possible == 0)
        return;
    int former = 0;
    if (cudaGetDevice(&former) != cudaSuccess || cudaSetDevice(device) != cudaSuccess)
        return;
    if (cudaDeviceEnablePeerAccess(peer, 0) == cudaErrorPeerAccessAlreadyEnabled)
        (void)cudaGetLastError();
    (void)cudaSetDevice(former);
}

SLUICE_BODY UncheckedCuda::NativeStream UncheckedCuda::create_stream(const StreamOptions& options) {
    const unsigned flags = options.blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    NativeStream stream = nullptr;
    const detail::SemaphoreWaits::Pause pause(true); // One in some 30 waits for all streams.
    if (options.share != nullptr)
        stream = create_stream_of(options);
    else
        SLUICE_CUDA_CHECK(cudaStreamCreateWithPriority(&stream, flags, options.priority));
    counts().streams.add();
    return stream;
}

SLUICE_BODY void UncheckedCuda::destroy_stream(NativeStream stream) noexcept {
    forget_host_stream(stream); // another one may come by its handle
    forget_stream(stream);
    detail::SemaphoreWaits::instance().forget_stream(stream);
    (void)cudaStreamDestroy(stream);
    counts().streams.remove();
}

SLUICE_BODY void UncheckedCuda::synchronize_stream(NativeStream stream) {
    SLUICE_CUDA_CHECK(cudaStreamSynchronize(stream));
    detail::DeferredFrees::instance().try_again();
    throw_host_failure(stream);
}

SLUICE_BODY bool UncheckedCuda::stream_done(NativeStream stream) {
    const cudaError_t before = cudaPeekAtLastError();
    const bool done = ready(cudaStreamQuery(stream), before, "cudaStreamQuery(stream)", __LINE__);
    throw_host_failure(stream);
    return done;
}

SLUICE_BODY int UncheckedCuda::device_of(NativeStream stream) {
    // To ask would break the capture. The capturing thread has the stream's device current.
    if (is_capturing(stream))
        return current_device();
    int device = 0;
#if CUDART_VERSION >= 12080
    SLUICE_CUDA_CHECK(cudaStreamGetDevice(stream, &device));
#else
    // An event can be recorded only on a stream of its own device: try each, and first the current one, whose default
    // streams the handles without a device mean.
    int current = 0;
    SLUICE_CUDA_CHECK(cudaGetDevice(&current));
    bool found = false;
    for (int tried = 0, count = device_count(); tried < count && !found; ++tried) {
        device = (current + tried) % count;
        cudaEvent_t probe = nullptr;
        SLUICE_CUDA_CHECK(cudaSetDevice(device));
        SLUICE_CUDA_CHECK(cudaEventCreateWithFlags(&probe, cudaEventDisableTiming));
        const cudaError_t before = cudaPeekAtLastError();
        const cudaError_t recorded = cudaEventRecord(probe, stream);
        detail::forget_cuda_error(recorded, before);
        found = recorded == cudaSuccess;
        (void)cudaEventDestroy(probe);
    }
    SLUICE_CUDA_CHECK(cudaSetDevice(current));
    if (!found)
        throw Error("the stream belongs to none of this machine's devices");
#endif
    return device;
}

SLUICE_BODY bool UncheckedCuda::is_blocking(NativeStream stream) {
    unsigned flags = cudaStreamDefault;
    SLUICE_CUDA_CHECK(cudaStreamGetFlags(stream, &flags));
    return (flags & cudaStreamNonBlocking) == 0;
}

SLUICE_BODY int UncheckedCuda::priority_of(NativeStream stream) {
    int priority = 0;
    SLUICE_CUDA_CHECK(cudaStreamGetPriority(stream, &priority));
    return priority;
}

SLUICE_BODY UncheckedCuda::NativeEvent UncheckedCuda::create_event(const EventOptions& options) {
    const unsigned flags = (options.timing ? cudaEventDefault : cudaEventDisableTiming) |
                           (options.sleep_while_waiting ? cudaEventBlockingSync : cudaEventDefault);
    NativeEvent event = nullptr;
    SLUICE_CUDA_CHECK(cudaEventCreateWithFlags(&event, flags));
    counts().events.add();
    return event;
}

SLUICE_BODY void UncheckedCuda::destroy_event(NativeEvent event) noexcept {
    (void)cudaEventDestroy(event);
    counts().events.remove();
}

SLUICE_BODY void UncheckedCuda::record(NativeEvent event, NativeStream stream) {
    SLUICE_CUDA_CHECK(cudaEventRecord(event, stream));
}

SLUICE_BODY void UncheckedCuda::wait(NativeStream stream, NativeEvent event) {
    SLUICE_CUDA_CHECK(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault));
}

SLUICE_BODY void UncheckedCuda::synchronize_event(NativeEvent event) {
    SLUICE_CUDA_CHECK(cudaEventSynchronize(event));
}

SLUICE_BODY bool UncheckedCuda::event_done(NativeEvent event) {
    const cudaError_t before = cudaPeekAtLastError();
    return ready(cudaEventQuery(event), before, "cudaEventQuery(event)", __LINE__);
}

SLUICE_BODY float UncheckedCuda::elapsed_milliseconds(NativeEvent start, NativeEvent stop) {
    float milliseconds = 0;
    SLUICE_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    return milliseconds;
}

SLUICE_BODY UncheckedCuda::NativeSemaphore UncheckedCuda::create_semaphore() {
    const NativeSemaphore semaphore = make_semaphore();
    counts().semaphores.add();
    return semaphore;
}

SLUICE_BODY void UncheckedCuda::destroy_semaphore(NativeSemaphore semaphore) noexcept {
    drop_semaphore(semaphore);
    counts().semaphores.remove();
}

SLUICE_BODY void UncheckedCuda::signal_semaphore(NativeStream stream, NativeSemaphore semaphore,
                                                 std::uint32_t value) {
    write_on(stream, semaphore, value);
    note_operation(stream);
}

SLUICE_BODY void UncheckedCuda::wait_semaphore(NativeStream stream, NativeSemaphore semaphore,
                                               std::uint32_t value) {
    detail::DeferredFrees& frees = detail::DeferredFrees::instance();
    if (frees.count() >= frees.most && !is_capturing(stream)) [[unlikely]]
        frees.free_kept(true);
    wait_on(stream, semaphore, value);
    note_operation(stream);
}

SLUICE_BODY void UncheckedCuda::copy_to_ring(NativeStream stream, const detail::RingCopy& copy) {
    launch_ring_copy(stream, copy);
    note_operation(stream);
}

SLUICE_BODY bool UncheckedCuda::copy_to_place(NativeStream stream, const detail::RingCopy& copy) {
    const bool copied = launch_small_copy(stream, copy);
    if (copied)
        note_operation(stream);
    return copied;
}

SLUICE_BODY void UncheckedCuda::copy_rows(const detail::RowsCopy& copy, CopyKind kind, NativeStream stream) {
    // As in `copy`.
    if (kind == CopyKind::host_to_host)
        return enqueue(stream, copy);
    SLUICE_CUDA_CHECK(cudaMemcpy2DAsync(copy.to, copy.to_pitch, copy.from, copy.from_pitch, copy.bytes,
                                        copy.rows, native_kind(kind), stream));
    note_operation(stream);
}

// Once more where memory that is kept could be freed.
template <class Allocate>
cudaError_t UncheckedCuda::allocate_or_free_kept(const Allocate& allocate) {
    const cudaError_t error = allocate();
    if (error != cudaErrorMemoryAllocation || !detail::DeferredFrees::instance().free_in_need())
        return error;
    detail::forget_cuda_error(error);
    return allocate();
}

SLUICE_BODY void* UncheckedCuda::allocate_device(std::size_t bytes) {
    void* memory = nullptr;
    check_allocation(allocate_or_free_kept([&] { return cudaMalloc(&memory, bytes); }), "cudaMalloc", bytes,
                     __LINE__);
    counts().device_allocations.add();
    return memory;
}

SLUICE_BODY void* UncheckedCuda::allocate_device(std::size_t bytes, NativeStream stream) {
    void* memory = nullptr;
    check_allocation(allocate_or_free_kept([&] { return cudaMallocAsync(&memory, bytes, stream); }),
                     "cudaMallocAsync", bytes, __LINE__);
    counts().device_allocations.add();
    return memory;
}

SLUICE_BODY void UncheckedCuda::free_device(void* memory) noexcept {
    detail::DeferredFrees::instance().free(memory, [](void* given) noexcept { (void)cudaFree(given); });
    counts().device_allocations.remove();
}

SLUICE_BODY void UncheckedCuda::free_device(void* memory, NativeStream stream) noexcept {
    (void)cudaFreeAsync(memory, stream);
    counts().device_allocations.remove();
}

SLUICE_BODY void* UncheckedCuda::allocate_pinned(std::size_t bytes, const PinnedOptions& options) {
    void* memory = nullptr;
    const unsigned flags =
        options.write_combined ? cudaHostAllocPortable | cudaHostAllocWriteCombined : cudaHostAllocPortable;
    check_allocation(allocate_or_free_kept([&] { return cudaHostAlloc(&memory, bytes, flags); }),
                     "cudaHostAlloc", bytes, __LINE__);
    counts().pinned_allocations.add();
    return memory;
}

SLUICE_BODY void UncheckedCuda::free_pinned(void* memory) noexcept {
    detail::DeferredFrees::instance().free(memory, [](void* given) noexcept { (void)cudaFreeHost(given); });
    counts().pinned_allocations.remove();
}

SLUICE_BODY std::size_t UncheckedCuda::device_memory_in_use() {
    // So that no other thread's capture forbids it, or is broken by it.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    SLUICE_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    std::size_t free = 0;
    std::size_t total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    SLUICE_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    detail::check_cuda(error, "cudaMemGetInfo(&free, &total)", __FILE__, __LINE__);
    return total - free;
}

SLUICE_BODY void UncheckedCuda::copy(void* to, const void* from, std::size_t bytes, CopyKind kind,
                                     NativeStream stream) {
    // cudaMemcpyAsync is documented to wait for copies from host to host.
    if (kind == CopyKind::host_to_host)
        return enqueue(stream, [to, from, bytes] { std::memcpy(to, from, bytes); });
    SLUICE_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, native_kind(kind), stream));
    note_operation(stream);
}

SLUICE_BODY void UncheckedCuda::fill_bytes(void* memory, int value, std::size_t bytes, NativeStream stream) {
    SLUICE_CUDA_CHECK(cudaMemsetAsync(memory, value, bytes, stream));
    note_operation(stream);
}

SLUICE_BODY void UncheckedCuda::fill_elements(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                                              std::size_t count, NativeStream stream) {
    if (element_bytes == 1)
        return fill_bytes(memory, static_cast<int>(pattern & 0xffU), count, stream);
    detail::fill_with_pattern(memory, pattern, element_bytes, count, stream);
    note_operation(stream);
}

SLUICE_BODY void UncheckedCuda::check_launches() { SLUICE_CUDA_CHECK(cudaGetLastError()); }

SLUICE_BODY void UncheckedCuda::throw_if_failed(NativeStream stream) { throw_host_failure(stream); }

SLUICE_BODY bool UncheckedCuda::any_failed() noexcept { return any_host_failure(); }

SLUICE_BODY void UncheckedCuda::clear_failure(NativeStream stream) noexcept {
    (void)cudaGetLastError();
    clear_host_failure(stream);
}

SLUICE_BODY void UncheckedCuda::note_operation(NativeStream stream) {
    if (detail::capture_ledger().depth > 0) [[unlikely]]
        note_operation(is_capturing(stream));
}
SLUICE_BODY void UncheckedCuda::note_operation(bool captured) noexcept {
    detail::CaptureLedger& ledger = detail::capture_ledger();
    if (ledger.depth > 0) [[unlikely]]
        ledger.note(captured);
}

SLUICE_BODY bool UncheckedCuda::ready(cudaError_t state, cudaError_t before, const char* call, int line) {
    if (state == cudaErrorNotReady) {
        if (before == cudaSuccess)
            detail::forget_cuda_error(state);
        return false;
    }
    detail::check_cuda(state, call, __FILE__, line);
    return true;
}

SLUICE_BODY void UncheckedCuda::check_allocation(cudaError_t error, const char* call, std::size_t bytes,
                                                 int line) {
    if (error == cudaSuccess)
        return;
    const std::string text = std::string(call) + " of " + detail::counted(bytes, "byte");
    detail::throw_cuda_error(error, text.c_str(), __FILE__, line);
}

} // namespace sluice
