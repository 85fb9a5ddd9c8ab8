/// \file
/// Events: points in streams that others can wait for.
#pragma once

#include <utility>

#include <sluice/backend/default.hpp>
#include <sluice/backend/detail/owned.hpp>

namespace sluice {

template <Backend B>
class BasicStreamRef;

/// Owns an event. Move-only; a moved-from event owns nothing: it may be assigned to, and every other use throws `Error`.
///
/// It belongs to the device that was current when it was made. Any thread may use it, one at a time for
/// `record`.
template <Backend B>
class BasicEvent {
public:
    /// `cudaEvent_t` on CUDA.
    using Native = typename B::NativeEvent;

    /// Makes an event on the current device. Throws `Error`.
    explicit BasicEvent(const EventOptions& options = {}) : native_(B::create_event(options)) {}

    /// Takes over a native event, which the result destroys.
    static BasicEvent from_native_handle(Native native) noexcept { return BasicEvent{native, Adopt{}}; }

    /// Takes `other`'s event over.
    BasicEvent(BasicEvent&& other) noexcept : native_(std::exchange(other.native_, Native{})) {}
    /// Takes `other`'s event over and destroys the former one.
    BasicEvent& operator=(BasicEvent&& other) noexcept {
        if (this != &other) {
            destroy();
            native_ = std::exchange(other.native_, Native{});
        }
        return *this;
    }
    ~BasicEvent() { destroy(); }

    /// Marks what `stream` has been handed so far. Throws `Error`, also when the stream is another device's.
    void record(BasicStreamRef<B> stream);

    /// Waits on the calling thread until the latest record has been reached. Throws `Error`.
    void sync() const { B::synchronize_event(detail::owned_by("event", native_)); }

    /// Whether the latest record has been reached; true if there is none. Throws `Error`.
    bool is_done() const { return B::event_done(detail::owned_by("event", native_)); }

    /// The native event, which stays this object's; null if it was moved from.
    Native get() const noexcept { return native_; }

    /// Gives the native event up: the caller destroys it.
    Native release() noexcept {
        if (native_ != Native{})
            B::counts().events.remove();
        return std::exchange(native_, Native{});
    }

private:
    struct Adopt {};
    BasicEvent(Native native, Adopt) noexcept : native_(native) {
        if (native_ != Native{})
            B::counts().events.adopt();
    }

    void destroy() noexcept {
        if (native_ != Native{})
            B::destroy_event(native_);
    }

    Native native_;
};

/// Milliseconds between the latest records of two events made with `EventOptions{.timing = true}`, both
/// reached. Throws `Error` otherwise.
template <Backend B>
float elapsed_milliseconds(const BasicEvent<B>& start, const BasicEvent<B>& stop) {
    return B::elapsed_milliseconds(detail::owned_by("event", start.get()),
                                   detail::owned_by("event", stop.get()));
}

/// Of the default backend.
using Event = BasicEvent<DefaultBackend>;
/// Of the Host backend.
using HostEvent = BasicEvent<Host>;
#if SLUICE_HAS_CUDA
/// Of the Cuda backend.
using CudaEvent = BasicEvent<Cuda>;
#endif

} // namespace sluice
