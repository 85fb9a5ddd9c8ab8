/// \file
/// Semaphores: counters that streams and host threads signal and wait for.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include <sluice/backend/default.hpp>
#include <sluice/backend/detail/clock.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/detail/waiting_thread.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice {

/// A backend with semaphores, an optional part. Like `Backend`, static functions over a native handle:
///
/// | functions | what they do |
/// | --- | --- |
/// | `create_semaphore`, `destroy_semaphore` | a counter at 0; destroying waits for nothing |
/// | `signal_semaphore`, `wait_semaphore` with a stream | raise the counter, or wait for it, in stream order |
/// | `signal_semaphore`, `semaphore_value`, `reset_semaphore` | from the host, at once |
///
/// All but the destroying functions throw `Error`.
template <class B>
concept SemaphoreBackend = Backend<B> &&
    requires(typename B::NativeStream stream, typename B::NativeSemaphore semaphore, std::uint32_t value) {
    { B::create_semaphore() } -> std::same_as<typename B::NativeSemaphore>;
    { B::destroy_semaphore(semaphore) }
    noexcept;
    {B::signal_semaphore(stream, semaphore, value)};
    {B::wait_semaphore(stream, semaphore, value)};
    {B::signal_semaphore(semaphore, value)};
    { B::semaphore_value(semaphore) } -> std::same_as<std::uint32_t>;
    {B::reset_semaphore(semaphore)};
};

/// A timeline semaphore: a counter of 32 bits that starts at 0 and only rises. Streams raise it and wait for it in
/// their order, host threads at once; so a thread can wait for a stream without an event, and a stream for a thread.
/// Values are compared round the end of 32 bits: what is waited for must be less than 2^31 away.
///
/// Any thread may use it; who signals sees to it that the values rise. It belongs to no device: streams of any one may
/// use it. It must outlive the signals and waits that streams hold. Neither can be captured on the Host backend.
///
/// A wait for a value that no stream has been handed a signal of ends when the semaphore is destroyed; and, once a pipeline has
/// failed, is reset, or is destroyed by an exception, on the pipeline's streams, if it is not signalled for a second. The counter is
/// raised then. On the Host backend the stream fails and skips its later work; on a device, work goes on with what is there.
///
/// Move-only; a moved-from semaphore may be assigned to, and every other use throws `Error`.
template <SemaphoreBackend B>
class BasicSemaphore {
public:
    /// The backend's handle.
    using Native = typename B::NativeSemaphore;

    /// A counter at 0. Throws `Error`, also when the device's driver has no such operations.
    BasicSemaphore() : native_(B::create_semaphore()) {}
    /// Takes `other`'s semaphore over.
    BasicSemaphore(BasicSemaphore&& other) noexcept : native_(std::exchange(other.native_, Native{})) {}
    /// Takes `other`'s semaphore over and destroys the former one.
    BasicSemaphore& operator=(BasicSemaphore&& other) noexcept {
        if (this != &other) {
            destroy();
            native_ = std::exchange(other.native_, Native{});
        }
        return *this;
    }
    /// Waits for nothing, and ends waits for what can no longer be signalled.
    ~BasicSemaphore() { destroy(); }

    /// Raises the counter to `value` after what `stream` has been handed so far. A thread that sees the value sees what
    /// that work wrote to pinned memory. Throws `Error`.
    ///
    /// A fault of the stream: on a device the counter is never raised, on the Host backend it is, and streams that wait
    /// for the value fail with the same. A thread that waits asks the stream.
    void signal(BasicStreamRef<B> stream, std::uint32_t value) {
        noted(stream, value, false, [&] { B::signal_semaphore(stream.get(), own(), value); });
    }

    /// Makes what `stream` is handed later wait until the counter is at `value` or above. Throws `Error`.
    void wait(BasicStreamRef<B> stream, std::uint32_t value) const {
        noted(stream, value, true, [&] { B::wait_semaphore(stream.get(), own(), value); });
    }

    /// Raises the counter to `value` at once. A stream that waits for it sees what this thread wrote to pinned memory.
    void signal(std::uint32_t value) { B::signal_semaphore(own(), value); }

    /// The counter's value now.
    std::uint32_t value() const { return B::semaphore_value(own()); }

    /// Whether the counter is at `value` or above.
    bool reached(std::uint32_t value) const {
        // A race checker wants to know what was asked for: that the counter is further on already may be luck.
        if constexpr (requires { B::semaphore_reached(native_, value); })
            return B::semaphore_reached(own(), value);
        else
            return detail::at_least(this->value(), value);
    }

    /// Waits on the calling thread until the counter is at `value` or above, for at most `timeout`; whether it is. It
    /// looks without a pause for the first 20 microseconds, lets other threads run between two looks up to 2,000, and
    /// sleeps for 50 between them from then on.
    [[nodiscard("it tells whether the counter came there, or the time was over")]] bool
    wait_for(std::uint32_t value, std::chrono::nanoseconds timeout) const;

    /// Sets the counter back to 0. No thread or stream may be waiting for it, and no stream hold a signal.
    void reset() {
        if constexpr (detail::SemaphoreCalls<B>::there)
            detail::SemaphoreWaits::instance().forget(own());
        B::reset_semaphore(own());
    }

    /// The native semaphore, which stays this object's; null if it was moved from.
    Native get() const noexcept { return native_; }

private:
    Native own() const { return detail::owned_by("semaphore", native_); }
    template <class Call>
    void noted(BasicStreamRef<B> stream, std::uint32_t value, bool waits, const Call& call) const {
        if constexpr (detail::SemaphoreCalls<B>::there) {
            auto& known = detail::SemaphoreWaits::instance();
            const detail::SemaphoreWaits::Entry entry{own(), value, stream.get(), waits,
                                                      &detail::SemaphoreCalls<B>::calls};
            known.add(entry);
            try {
                call();
            } catch (...) { // such as of a stream that is being captured, which will neither wait nor signal
                known.take_back(entry);
                throw;
            }
        } else {
            call();
        }
    }
    void destroy() noexcept {
        if (native_ == Native{})
            return;
        if constexpr (detail::SemaphoreCalls<B>::there)
            detail::SemaphoreWaits::instance().end_waits(native_);
        B::destroy_semaphore(native_);
    }

    Native native_;
};

// ---------------------------------------------------------------------------------------------------------------

template <SemaphoreBackend B>
bool BasicSemaphore<B>::wait_for(std::uint32_t value, std::chrono::nanoseconds timeout) const {
    if (reached(value))
        return true;
    detail::WaitingThread thread(timeout.count());
    do {
        for (int look = 0; look < 16; ++look) {
            detail::spin_pause();
            if (reached(value))
                return true;
        }
    } while (thread.goes_on());
    return false;
}

/// Of the default backend.
using Semaphore = BasicSemaphore<DefaultBackend>;
/// Of the Host backend.
using HostSemaphore = BasicSemaphore<Host>;
#if SLUICE_HAS_CUDA
/// Of the Cuda backend.
using CudaSemaphore = BasicSemaphore<Cuda>;
#endif

} // namespace sluice
