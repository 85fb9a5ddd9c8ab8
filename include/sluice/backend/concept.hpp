/// \file
/// What a backend is.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sluice/backend/types.hpp>

namespace sluice {

/// A backend is a type with static functions over two native handles, a stream's and an event's. The owners
/// (`BasicStream`, `BasicEvent`, `DeviceBuffer`, `PinnedBuffer`) are written once, over these functions; a
/// backend that wraps another forwards them and adds to them.
///
/// | functions | what they do |
/// | --- | --- |
/// | `device_count`, `current_device`, `set_device`, `device_name`, `priorities` | the machine's devices; the current one is the calling thread's |
/// | `create_stream`, `destroy_stream`, `device_of`, `priority_of` | a stream, on the current device |
/// | `synchronize_stream`, `stream_done` | wait, or ask, for all that the stream was handed; both report its fault |
/// | `create_event`, `destroy_event`, `record`, `wait` | an event; `wait` orders a stream after its latest record, if there is one |
/// | `synchronize_event`, `event_done`, `elapsed_milliseconds` | wait for the latest record, ask for it, time between two |
/// | `allocate_device`, `free_device` | device memory; with a stream, ordered on it |
/// | `allocate_pinned`, `free_pinned` | host memory that devices copy from and to; with `PinnedOptions` where buffers are given some |
/// | `copy`, `fill_bytes` | in stream order |
/// | `check_launches` | throws the error that an earlier launch of this thread left behind, and forgets it |
/// | `throw_if_failed`, `clear_failure` | throw, or forget, the fault of a stream's work that is known already |
/// | `counts` | what has been created so far |
///
/// Memory is aligned to 256 bytes. Memory that is ordered on a stream is usable by work enqueued there later, and freed after what is enqueued there
/// already; freeing it waits for nothing. `throw_if_failed` is cheap enough for every step, so a fault that any next call reports need not be thrown by it.
///
/// Further parts are optional: `SemaphoreBackend`; `FillBackend`; `MemoryUseBackend`; `ShareBackend`; and `enqueue(stream, callable)`, which runs a callable
/// on the host in stream order.
///
/// All but the destroying and freeing functions throw `Error`.
template <class B>
concept Backend = requires(typename B::NativeStream stream, typename B::NativeEvent event, void* memory,
                           const void* from, std::size_t bytes, int device) {
    { B::name } -> std::convertible_to<const char*>;
    { B::counts() } -> std::same_as<ObjectCounts&>;

    { B::device_count() } -> std::same_as<int>;
    { B::current_device() } -> std::same_as<int>;
    {B::set_device(device)};
    { B::device_name(device) } -> std::same_as<std::string>;
    { B::priorities() } -> std::same_as<PriorityRange>;

    { B::create_stream(StreamOptions{}) } -> std::same_as<typename B::NativeStream>;
    { B::destroy_stream(stream) }
    noexcept;
    {B::synchronize_stream(stream)};
    { B::stream_done(stream) } -> std::same_as<bool>;
    { B::device_of(stream) } -> std::same_as<int>;
    { B::priority_of(stream) } -> std::same_as<int>;

    { B::create_event(EventOptions{}) } -> std::same_as<typename B::NativeEvent>;
    { B::destroy_event(event) }
    noexcept;
    {B::record(event, stream)};
    {B::wait(stream, event)};
    {B::synchronize_event(event)};
    { B::event_done(event) } -> std::same_as<bool>;
    { B::elapsed_milliseconds(event, event) } -> std::same_as<float>;

    { B::allocate_device(bytes) } -> std::same_as<void*>;
    { B::allocate_device(bytes, stream) } -> std::same_as<void*>;
    { B::free_device(memory) }
    noexcept;
    { B::free_device(memory, stream) }
    noexcept;
    { B::allocate_pinned(bytes) } -> std::same_as<void*>;
    { B::free_pinned(memory) }
    noexcept;
    {B::copy(memory, from, bytes, CopyKind::host_to_device, stream)};
    {B::fill_bytes(memory, 0, bytes, stream)};

    {B::check_launches()};
    {B::throw_if_failed(stream)};
    { B::clear_failure(stream) }
    noexcept;
};

/// A backend whose `fill_elements(memory, pattern, element_bytes, count, stream)` writes the lowest `element_bytes` (1, 2
/// or 4) bytes of `pattern` `count` times in stream order. `memory` is a multiple of `element_bytes`. Throws `Error`.
template <class B>
concept FillBackend = Backend<B> && requires(void* memory, std::uint32_t pattern, std::size_t bytes,
                                             std::size_t count, typename B::NativeStream stream) {
    {B::fill_elements(memory, pattern, bytes, count, stream)};
};

/// A backend whose `device_memory_in_use()` gives the bytes of the current device's memory that are taken now. Any thread
/// may call it, also while another one captures. Throws `Error`.
///
/// - `Cuda`: what the driver counts as taken, by whichever process, contexts and code included. Memory that was allocated in
///   stream order counts until its pool gives it back, not until it is freed.
/// - `Host`: device memory that was allocated through the backend, of all host devices together; pinned memory not.
template <class B>
concept MemoryUseBackend = Backend<B> && requires {
    { B::device_memory_in_use() } -> std::same_as<std::size_t>;
};

/// A backend whose devices' multiprocessors can be shared out, so that streams which are made with different
/// `StreamOptions::share`s run kernels on different ones.
///
/// | functions | what they do |
/// | --- | --- |
/// | `multiprocessors` | how many the current device has |
/// | `share_unit` | the current device shares them out in groups of so many |
/// | `create_shares(counts, count, with_rest, shares)` | splits the current device: `shares[i]` is of `counts[i]` multiprocessors, a multiple of the unit, and with `with_rest` `shares[count]` of all others; gives how many those are. What it has written to `shares` is made, also where it throws |
/// | `destroy_share` | the streams that were made with it are destroyed |
/// | `share_of` | that of a stream, or null; also while the stream is being captured, where it was made by `create_stream` |
///
/// All but the last two throw `Error`, also where the driver cannot.
template <class B>
concept ShareBackend = Backend<B> && requires(typename B::NativeStream stream, const int* counts,
                                              std::size_t count, void** shares, void* share) {
    { B::multiprocessors() } -> std::same_as<int>;
    { B::share_unit() } -> std::same_as<int>;
    { B::create_shares(counts, count, true, shares) } -> std::same_as<int>;
    { B::destroy_share(share) }
    noexcept;
    { B::share_of(stream) }
    noexcept->std::same_as<void*>;
};

} // namespace sluice
