// What the Host backend consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <sluice/backend/detail/copies.hpp>
#include <sluice/backend/detail/host/graphs.hpp>
#include <sluice/backend/detail/host/task.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/types.hpp>

namespace sluice::host {

class Semaphore;

/// The functions of `Host`: see the concepts `Backend`, `GraphBackend` and `SemaphoreBackend` for what each does.
struct Functions : Graphs {
    using NativeStream = Queue*;
    using NativeEvent = Event*;
    using NativeSemaphore = Semaphore*;

    static constexpr const char* name = "host";
    /// Destroying a stream waits for its work.
    static constexpr bool waits_for_destroyed_streams = true;

    // Devices
    // -------------------------------------------------------------------------------------------------
    static int device_count();
    static int current_device() noexcept;
    static void set_device(int device);
    static std::string device_name(int);
    static PriorityRange priorities() noexcept { return {}; }

    // Streams
    // -------------------------------------------------------------------------------------------------
    static NativeStream create_stream(const StreamOptions& options);
    /// A stream without a thread: the enqueuing thread runs a task at once, and so it does copies, fills, records and
    /// waits. What a task enqueues on the stream that runs it comes right after that task. Destroyed as any other.
    static NativeStream create_inline_stream(const StreamOptions& options = {});
    static void destroy_stream(NativeStream stream) noexcept;
    static void synchronize_stream(NativeStream stream);
    static bool stream_done(NativeStream stream);
    static int device_of(NativeStream stream);
    static int priority_of(NativeStream stream);

    /// Runs `callable` on the stream's thread, after what is enqueued already. In a capture it becomes a node.
    template <class F>
    static void enqueue(NativeStream stream, F&& callable) {
        detail::require_callable("enqueue: the callable", callable);
        enqueue_task(stream, Task{std::forward<F>(callable)});
    }

    // Events
    // --------------------------------------------------------------------------------------------------
    static NativeEvent create_event(const EventOptions& options);
    static void destroy_event(NativeEvent event) noexcept;
    static void record(NativeEvent event, NativeStream stream);
    static void wait(NativeStream stream, NativeEvent event);
    static void synchronize_event(NativeEvent event);
    static bool event_done(NativeEvent event);
    /// The same, whatever became of the work before the record.
    static bool event_reached(NativeEvent event);
    static float elapsed_milliseconds(NativeEvent start, NativeEvent stop);

    /// As `detail::RingCopy`, in the order of `stream`.
    static void copy_to_ring(NativeStream stream, const detail::RingCopy& copy);
    static bool has_ring_copies(bool) noexcept { return true; }
    /// As `detail::RowsCopy`, in the order of `stream`.
    static void copy_rows(const detail::RowsCopy& copy, CopyKind, NativeStream stream);

    // Semaphores
    // --------------------------------------------------------------------------------------------------
    static NativeSemaphore create_semaphore();
    static void destroy_semaphore(NativeSemaphore semaphore) noexcept;
    static void signal_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value);
    static void wait_semaphore(NativeStream stream, NativeSemaphore semaphore, std::uint32_t value);
    static void signal_semaphore(NativeSemaphore semaphore, std::uint32_t value);
    static std::uint32_t semaphore_value(NativeSemaphore semaphore) noexcept;
    /// The same, of which a checker learns nothing.
    static std::uint32_t look_at_semaphore(NativeSemaphore semaphore) noexcept;
    /// Raises it; streams that wait for the value fail.
    static void fail_semaphore(NativeSemaphore semaphore, std::uint32_t value) noexcept;
    static void reset_semaphore(NativeSemaphore semaphore);

    // Memory
    // --------------------------------------------------------------------------------------------------
    static void* allocate_device(std::size_t bytes);
    /// In a capture the memory belongs to the graph, and to the executables made from it.
    static void* allocate_device(std::size_t bytes, NativeStream stream);
    static void free_device(void* memory) noexcept;
    static void free_device(void* memory, NativeStream stream) noexcept;
    static void* allocate_pinned(std::size_t bytes, const PinnedOptions& = {});
    static void free_pinned(void* memory) noexcept;

    /// As `free_pinned` and `free_device`, and the memory itself stays there until `delete_retired`. False where it is a
    /// graph's, and nothing has been done; `ordered` is not for memory that is freed in a capture.
    /// @{
    static void retire_pinned(void*) noexcept;
    static bool retire_device(void* memory, bool ordered) noexcept;
    static void delete_retired(void* memory) noexcept;
    /// @}

    static std::size_t device_memory_in_use() noexcept;

    static void copy(void* to, const void* from, std::size_t bytes, CopyKind, NativeStream stream);
    static void fill_bytes(void* memory, int value, std::size_t bytes, NativeStream stream);
    static void fill_elements(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                              std::size_t count, NativeStream stream);

    // Faults
    // --------------------------------------------------------------------------------------------------
    static void check_launches() noexcept {}
    static void throw_if_failed(NativeStream stream);
    static void clear_failure(NativeStream stream) noexcept;

private:
    static void enqueue_task(NativeStream stream, Task task);
};

} // namespace sluice::host

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/backend/detail/host/backend.inl>
#endif
