// Which streams wait for a semaphore that no stream will signal, and which for one that a thread of the library will.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sluice/backend/config.hpp>
#include <sluice/backend/detail/list.hpp>

namespace sluice::detail {

/// Whether a semaphore's counter has come to `value`: round the end of 32 bits, as a device compares.
inline bool at_least(std::uint32_t counter, std::uint32_t value) noexcept {
    return static_cast<std::int32_t>(counter - value) >= 0;
}

/// What users' semaphores still have streams wait for, and which streams will raise them: so that cleaning up behind an
/// exception does not wait for a signal that never comes. Any thread may use it.
class SemaphoreWaits {
public:
    /// Of a backend, for handles that are pointers. Neither throws.
    struct Calls {
        std::uint32_t (*value)(void* semaphore);
        void (*fail)(void* semaphore,
                     std::uint32_t value); // raises it, and fails those that wait where it can
    };
    /// That `stream` waits for `value`, or raises the semaphore to it.
    struct Entry {
        void* semaphore;
        std::uint32_t value;
        const void* stream;
        bool waits;
        const Calls* calls;
        bool for_thread = false; // that will signal it in any case: a CPU stage's
    };
    using Ours = bool (*)(const void* context, const void* stream);

    static SemaphoreWaits& instance();
    /// How long some other thread may yet signal, in nanoseconds.
    static constexpr std::int64_t patience = 1'000'000'000;

    /// Throws where there is no memory.
    void add(const Entry& entry);
    /// What was refused behind its `add`.
    void take_back(const Entry& entry) noexcept;
    /// The semaphore begins anew, or goes.
    void forget(const void* semaphore) noexcept;
    /// The stream goes, which may not have come to its waits yet, and another one may come by its handle: they are not that one's.
    void forget_stream(const void* stream) noexcept;
    /// The semaphore goes: ends waits for what no stream will signal.
    void end_waits(const void* semaphore) noexcept;
    /// Waits until no stream for which `ours(context, stream)` waits for what no stream will signal. If for a second no thread signals
    /// it, such waits end, as by a signal: true then.
    bool give_up(Ours ours, const void* context) noexcept;
    bool give_up(const void* stream) noexcept;
    /// Whether a stream for which `ours(context, stream)` waits for what no stream will signal.
    bool any(Ours ours, const void* context) noexcept { return unsignalled(ours, context, false) != 0; }
    /// The same for `stream` and for the streams that wait for each other with it: those of a `Together`.
    bool give_up_around(const void* stream) noexcept;

    /// Waits until no stream waits for a CPU stage's thread, for a second at most: whether none does. Before CUDA makes graphs or loads
    /// kernels: it may wait for all streams then, with other threads' calls of it behind that, such as those that a CPU stage makes.
    /// Where a second was not enough, it does not wait again before all have caught up once; in a CPU stage it does not wait at all.
    bool let_threads_catch_up() noexcept;

    /// For a call that may wait for all streams, with other threads' calls behind it. None begins to wait for a CPU stage's thread meanwhile,
    /// unless the call takes longer than a second.
    class Pause {
    public:
        /// With `wait` it lets threads catch up first.
        explicit Pause(bool wait) noexcept;
        Pause& operator=(Pause&&) = delete;
        ~Pause();
        /// Whether no stream waits for a CPU stage's thread: otherwise the call must not be made.
        explicit operator bool() const noexcept { return begun_; }

    private:
        bool begun_ = false;
    };

    /// Streams that wait for each other, as a pipeline's do, as long as this lives: all for which `ours(context, stream)`.
    class Together {
    public:
        Together(Ours ours, const void* context);
        Together& operator=(Together&&) = delete;
        ~Together();

    private:
        friend SemaphoreWaits;
        Ours ours_;
        const void* context_;
    };

private:
    bool is_over(const Entry& entry) const;
    std::size_t unsignalled(Ours ours, const void* context, bool fail) noexcept;
    bool none_for_thread() noexcept;
    bool any_for_thread() noexcept;
    bool begin_pause() noexcept;
    bool is_paused() noexcept;

    struct Mutex;
    SemaphoreWaits();

    Mutex& mutex_;
    List<Entry> entries_;
    List<const Together*> together_;
    std::size_t look_at_ = 64; // So many entries: those that are over go.
    std::size_t pauses_ = 0;
    bool is_patient_ = true;
};

/// `SemaphoreWaits::Calls` of backend `B`; `there`: whether it has them.
template <class B>
struct SemaphoreCalls {
    static constexpr bool there = false;
};
template <class B>
requires requires(typename B::NativeSemaphore semaphore) {
    B::look_at_semaphore(semaphore);
    B::fail_semaphore(semaphore, 0U);
}
struct SemaphoreCalls<B> {
    static constexpr bool there = true;
    using Native = typename B::NativeSemaphore;
    static constexpr SemaphoreWaits::Calls calls{
        [](void* semaphore) { return B::look_at_semaphore(static_cast<Native>(semaphore)); },
        [](void* semaphore, std::uint32_t value) {
            B::fail_semaphore(static_cast<Native>(semaphore), value);
        }};
};

} // namespace sluice::detail

#if SLUICE_HAS_COMMON_BODIES
#include <sluice/backend/detail/semaphore_waits.inl>
#endif
