// What `Checked` consists of: each call forwarded, and told to the checker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/detail/checked/graphs.hpp>
#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/detail/checked/stress.hpp>
#include <sluice/backend/detail/copies.hpp>
#include <sluice/backend/error.hpp>
#include <sluice/backend/findings.hpp>
#include <sluice/backend/graph_concept.hpp>
#include <sluice/backend/types.hpp>

namespace sluice {

/// See backend/checked.hpp, and the concepts `Backend`, `FillBackend`, `GraphBackend` and `SemaphoreBackend` for what each function does.
/// What is not here is `B`'s own.
template <class B>
struct Checked : detail::CheckedGraphs<B> {
    using NativeStream = typename B::NativeStream;
    using NativeEvent = typename B::NativeEvent;

    /// For `is_checked`.
    static constexpr bool is_checked_backend = true;
    /// Whether all work goes through the backend. Kernels are launched past it.
    static constexpr bool sees_writes = !KernelGraphBackend<B>;
    /// As `checked::findings`, for who includes nothing of the checker.
    static std::vector<sluice::checked::Finding> findings() { return sluice::checked::findings(); }

    // Streams
    // --------------------------------------------------------------------------------------------------
    static NativeStream create_stream(const StreamOptions& options) {
        const NativeStream stream = B::create_stream(options);
        detail::checked::stream_made(key(stream), options.blocking, false);
        return stream;
    }
    static NativeStream create_inline_stream(const StreamOptions& options = {}) requires requires {
        B::create_inline_stream(options);
    }
    {
        const NativeStream stream = B::create_inline_stream(options);
        detail::checked::stream_made(key(stream), false, true);
        return stream;
    }
    static void destroy_stream(NativeStream stream) noexcept {
        const auto over = waits_in_destructor ? detail::checked::snapshot_of_stream(key(stream))
                                              : detail::checked::Snapshot{};
        B::destroy_stream(stream);
        detail::checked::host_saw(over, waits_in_destructor);
        detail::checked::stream_destroyed(key(stream));
    }
    static void synchronize_stream(NativeStream stream) {
        know(stream);
        const Seen seen(detail::checked::snapshot_of_stream(key(stream)));
        B::synchronize_stream(stream);
        seen.whether(true);
    }
    static bool stream_done(NativeStream stream) {
        know(stream);
        const Seen seen(detail::checked::snapshot_of_stream(key(stream)));
        return seen.whether(B::stream_done(stream));
    }
    template <class F>
    static void enqueue(NativeStream stream, F&& callable) requires requires(F f) {
        B::enqueue(stream, std::forward<F>(f));
    }
    {
        detail::require_callable("enqueue: the callable", callable);
        know(stream);
        stress(stream);
        const detail::checked::Token token = detail::checked::enqueued(key(stream));
        B::enqueue(stream, detail::CheckedCall<std::decay_t<F>>{std::forward<F>(callable), token});
    }

    // Events
    // --------------------------------------------------------------------------------------------------
    static void destroy_event(NativeEvent event) noexcept {
        detail::checked::event_destroyed(key(event)); // before another event can have its place
        B::destroy_event(event);
    }
    static void record(NativeEvent event, NativeStream stream) {
        know(stream);
        stress(stream);
        B::record(event, stream);
        detail::checked::recorded(key(event), key(stream));
    }
    static void wait(NativeStream stream, NativeEvent event) {
        know(stream);
        B::wait(stream, event);
        detail::checked::waited(key(stream), key(event));
        stress(stream, true);
    }
    static void synchronize_event(NativeEvent event) {
        const Seen seen(detail::checked::snapshot_of_event(key(event)));
        B::synchronize_event(event);
        seen.whether(true);
    }
    static bool event_done(NativeEvent event) {
        const Seen seen(detail::checked::snapshot_of_event(key(event)));
        return seen.whether(B::event_done(event));
    }
    static float elapsed_milliseconds(NativeEvent start, NativeEvent stop) {
        const Seen seen_start(detail::checked::snapshot_of_event(key(start)));
        const Seen seen_stop(detail::checked::snapshot_of_event(key(stop)));
        const float milliseconds = B::elapsed_milliseconds(start, stop);
        seen_start.whether(true);
        seen_stop.whether(true);
        return milliseconds;
    }

    // Semaphores
    // --------------------------------------------------------------------------------------------------
    template <class Semaphore>
    static void destroy_semaphore(Semaphore semaphore) noexcept {
        detail::checked::semaphore_destroyed(key(semaphore));
        B::destroy_semaphore(semaphore);
    }
    template <class Semaphore>
    static void signal_semaphore(NativeStream stream, Semaphore semaphore, std::uint32_t value) {
        know(stream);
        stress(stream);
        // Before the call: who sees the value may be quick.
        detail::checked::semaphore_signalled(key(semaphore), value, key(stream));
        B::signal_semaphore(stream, semaphore, value);
    }
    template <class Semaphore>
    static void wait_semaphore(NativeStream stream, Semaphore semaphore, std::uint32_t value) {
        know(stream);
        B::wait_semaphore(stream, semaphore, value);
        detail::checked::semaphore_waited(key(semaphore), value, key(stream));
        stress(stream, true);
    }
    template <class Semaphore>
    static void signal_semaphore(Semaphore semaphore, std::uint32_t value) {
        detail::checked::semaphore_signalled_by_host(key(semaphore), value);
        B::signal_semaphore(semaphore, value);
    }
    template <class Semaphore>
    static std::uint32_t semaphore_value(Semaphore semaphore) {
        const std::uint32_t value = B::semaphore_value(semaphore);
        detail::checked::semaphore_seen(key(semaphore), value);
        return value;
    }
    template <class Semaphore>
    static bool semaphore_reached(Semaphore semaphore, std::uint32_t value) {
        if (static_cast<std::int32_t>(B::semaphore_value(semaphore) - value) < 0)
            return false;
        detail::checked::semaphore_reached(key(semaphore), value);
        return true;
    }
    template <class Semaphore>
    static void reset_semaphore(Semaphore semaphore) {
        B::reset_semaphore(semaphore);
        detail::checked::semaphore_reset(key(semaphore));
    }

    // Memory
    // --------------------------------------------------------------------------------------------------
    static void* allocate_device(std::size_t bytes) {
        void* const memory = B::allocate_device(bytes);
        detail::checked::allocated(memory, bytes, true, sees_writes, false, nullptr);
        return memory;
    }
    static void* allocate_device(std::size_t bytes, NativeStream stream) {
        know(stream);
        void* const memory = B::allocate_device(bytes, stream);
        detail::checked::allocated(memory, bytes, true, sees_writes, true, key(stream));
        return memory;
    }
    static void free_device(void* memory) noexcept {
        [[maybe_unused]] const bool in_use = detail::checked::freed(memory, false, nullptr);
        if constexpr (keeps_memory) {
            if (in_use && B::retire_device(memory, false))
                return detail::checked::keep(memory, &B::delete_retired);
        }
        B::free_device(memory);
    }
    static void free_device(void* memory, NativeStream stream) noexcept {
        [[maybe_unused]] const bool in_use = detail::checked::freed(memory, true, key(stream));
        if constexpr (keeps_memory) {
            if (in_use && B::retire_device(memory, true))
                return detail::checked::keep(memory, &B::delete_retired);
        }
        B::free_device(memory, stream);
    }
    static void* allocate_pinned(std::size_t bytes, const PinnedOptions& options = {}) {
        void* const memory = B::allocate_pinned(bytes, options);
        detail::checked::allocated(memory, bytes, false, sees_writes, false, nullptr);
        return memory;
    }
    static void free_pinned(void* memory) noexcept {
        (void)detail::checked::freed(memory, false, nullptr);
        if constexpr (keeps_memory) {
            B::retire_pinned(memory);
            detail::checked::keep(memory, &B::delete_retired);
        } else {
            B::free_pinned(memory);
        }
    }
    /// The model of a graph knows fixed addresses.
    static bool has_ring_copies(bool) noexcept { return false; }
    static void copy(void* to, const void* from, std::size_t bytes, CopyKind kind, NativeStream stream) {
        using detail::checked::Range;
        know(stream);
        stress(stream);
        const bool from_host = kind == CopyKind::host_to_device || kind == CopyKind::host_to_host;
        const bool to_host = kind == CopyKind::device_to_host || kind == CopyKind::host_to_host;
        const Range ranges[] = {{from, bytes, false, from_host}, {to, bytes, true, to_host}};
        // In `copy_and_wait` the host's side is the caller's alone meanwhile.
        const bool skips = detail::checked::HostSideScope::active();
        const std::size_t first = skips && kind == CopyKind::host_to_device ? 1 : 0;
        const std::size_t count = skips && kind == CopyKind::device_to_host ? 1 : 2 - first;
        detail::checked::accesses(key(stream), ranges + first, count, detail::checked::Op::copy, nullptr);
        B::copy(to, from, bytes, kind, stream);
    }
    static void copy_rows(const detail::RowsCopy& copy, CopyKind kind, NativeStream stream) {
        know(stream);
        stress(stream);
        const bool from_host = kind == CopyKind::host_to_device || kind == CopyKind::host_to_host;
        const bool to_host = kind == CopyKind::device_to_host || kind == CopyKind::host_to_host;
        std::vector<detail::checked::Range> ranges;
        ranges.reserve(2 * copy.rows);
        for (std::size_t row = 0; row < copy.rows; ++row) {
            ranges.push_back({copy.from + row * copy.from_pitch, copy.bytes, false, from_host});
            ranges.push_back({copy.to + row * copy.to_pitch, copy.bytes, true, to_host});
        }
        detail::checked::accesses(key(stream), ranges.data(), ranges.size(), detail::checked::Op::copy,
                                  nullptr);
        B::copy_rows(copy, kind, stream);
    }
    static void fill_bytes(void* memory, int value, std::size_t bytes, NativeStream stream) {
        know(stream);
        stress(stream);
        const detail::checked::Range range{memory, bytes, true};
        detail::checked::accesses(key(stream), &range, 1, detail::checked::Op::fill, nullptr);
        B::fill_bytes(memory, value, bytes, stream);
    }
    static void fill_elements(void* memory, std::uint32_t pattern, std::size_t element_bytes,
                              std::size_t count, NativeStream stream) {
        know(stream);
        stress(stream);
        const detail::checked::Range range{memory, element_bytes * count, true};
        detail::checked::accesses(key(stream), &range, 1, detail::checked::Op::fill, nullptr);
        B::fill_elements(memory, pattern, element_bytes, count, stream);
    }

private:
    template <class Native>
    static detail::checked::Key key(Native native) noexcept {
        return detail::checked::key_of(native);
    }
    // A stream that was made elsewhere: whether it waits for the legacy default stream.
    static void know(NativeStream stream) {
        if (detail::checked::knows_stream(key(stream))) [[likely]]
            return;
        bool blocking = true;
        if constexpr (requires { B::is_blocking(stream); })
            blocking = B::is_blocking(stream);
        bool is_default = false;
        if constexpr (requires { B::is_default_stream(stream); })
            is_default = B::is_default_stream(stream);
        detail::checked::stream_found(key(stream), blocking, is_default);
    }

    // See backend/stress.hpp.
    static void stress(NativeStream stream, bool behind_wait = false) {
        if (detail::checked::StressState::instance().on.load(std::memory_order_relaxed)) [[unlikely]]
            detail::checked::stress_stream<B>(stream, behind_wait);
    }

    // What is freed while work uses it would be reused before the mistake can be told. Pinned memory also since a place that a
    // container has now is no mistake.
    static constexpr bool keeps_memory = requires(void* memory) { B::delete_retired(memory); };
    // Destroying a host stream waits for it.
    static constexpr bool waits_in_destructor = requires { requires B::waits_for_destroyed_streams; };

    // What the calling thread knows after a call, also one that throws the fault of work that is over.
    class Seen {
    public:
        explicit Seen(const detail::checked::Snapshot& snapshot) noexcept : snapshot_(snapshot) {}
        Seen& operator=(Seen&&) = delete;
        ~Seen() { detail::checked::host_saw(snapshot_, seen_); }
        bool whether(bool seen) const noexcept { return seen_ = seen; }

    private:
        const detail::checked::Snapshot snapshot_;
        mutable bool seen_ = true;
    };
};

} // namespace sluice
