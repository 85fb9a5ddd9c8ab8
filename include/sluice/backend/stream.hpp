/// \file
/// Streams: queues of work that run concurrently.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>

#include <sluice/backend/default.hpp>
#include <sluice/backend/detail/semaphore_waits.hpp>
#include <sluice/backend/event.hpp>

namespace sluice {

namespace detail {

/// A foreign stream type that is made from a native handle and hands it back, such as `cuda::stream_ref`.
template <class T, class Native>
concept ForeignStreamRef = std::is_class_v<T> && std::is_convertible_v<Native, T> &&
    requires(const T& stream) {
    { stream.get() } -> std::same_as<Native>;
};

/// What a reference to no stream is made of.
struct NoStream {};

/// Whether a null handle is that of a default stream, as it is where the backend does not say otherwise.
template <class B>
inline constexpr bool null_names_a_stream = true;
template <class B>
requires(!B::has_default_stream) inline constexpr bool null_names_a_stream<B> = false;

[[noreturn]] void throw_null_stream(const char* backend);
#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void throw_null_stream(const char* backend) {
    throw Error(
        std::string("a reference to a stream was made of a null handle, which names no stream of the ") +
        backend + " backend; expected a stream");
}
#endif

} // namespace detail

/// Refers to a stream without owning it. Copies freely; does not keep the stream alive.
///
/// Converts from and to the native handle (`cudaStream_t`) and, where CCCL has it, `cuda::stream_ref`. Any
/// thread may use it, as the native stream.
template <Backend B>
class BasicStreamRef {
public:
    /// `cudaStream_t` on CUDA.
    using Native = typename B::NativeStream;

    /// Refers to `native`. A CUDA handle of 0 is the legacy default stream, which waits for all others: no
    /// literal converts by accident. On the Host backend, which has none, throws `Error` for a null handle.
    BasicStreamRef(Native native) noexcept(detail::null_names_a_stream<B>) : native_(native) {
        if constexpr (!detail::null_names_a_stream<B>) {
            if (native_ == Native{}) [[unlikely]]
                detail::throw_null_stream(B::name);
        }
    }
    BasicStreamRef(int) = delete;
    BasicStreamRef(std::nullptr_t) = delete;

    /// From a foreign reference to a stream, such as `cuda::stream_ref`.
    template <detail::ForeignStreamRef<Native> T>
    BasicStreamRef(const T& stream) noexcept : native_(stream.get()) {}

    /// For the library: to no stream. Nothing but its handle may be asked for.
    explicit BasicStreamRef(detail::NoStream) noexcept : native_() {}

    /// The native handle.
    Native get() const noexcept { return native_; }
    /// The native handle.
    operator Native() const noexcept { return native_; }

    /// To a foreign reference to a stream, such as `cuda::stream_ref`.
    template <detail::ForeignStreamRef<Native> T>
    requires(!std::derived_from<T, BasicStreamRef>) operator T() const { return T{native_}; }

    /// Orders what is enqueued later here after `event`'s latest record. Throws `Error`. If the recording stream had
    /// failed before the record, this one fails with the same cause on the Host backend; a faulted device fails all.
    void wait(const BasicEvent<B>& event) const { B::wait(native_, detail::owned_by("event", event.get())); }

    /// Waits on the calling thread for all that was enqueued here. Throws `Error`, also for a fault of that
    /// work, and in a task of this stream's own, which would wait for itself.
    void sync() const { B::synchronize_stream(native_); }

    /// Whether all that was enqueued here is done. Throws `Error`, also for a fault of that work.
    bool is_done() const { return B::stream_done(native_); }

    /// The device that the stream belongs to. Throws `Error`.
    int device() const { return B::device_of(native_); }

    /// The stream's priority; lower runs first. Throws `Error`.
    int priority() const { return B::priority_of(native_); }

    /// Runs `callable()` on the host when the stream gets there: on a host stream's own thread, on a device's on a
    /// thread of the runtime's. The callable is kept until it has run; in a capture it becomes part of the graph, is
    /// kept as long as the graph and its executables, and called once a replay. One of up to 200 bytes takes no heap
    /// memory in the steady state. Throws `Error`.
    ///
    /// What it throws fails the stream: `sync`, `is_done` and the backend's `throw_if_failed` report it, and
    /// callables that come later are skipped, until the backend's `clear_failure`. On a device, kernels and copies are
    /// not skipped, and a callable that was captured fails the stream that it was captured on; nothing reports it where that
    /// one has gone.
    ///
    /// On a device the callable must not call CUDA, and callables of several streams may run one after another, so one
    /// must not wait for another. A device that is lost runs none, and does not give them back.
    template <class F>
    void enqueue(F&& callable) const requires requires(Native native, F f) {
        B::enqueue(native, std::forward<F>(f));
    }
    {
        static_assert(std::invocable<F>,
                      "sluice: what is enqueued is called without arguments, as callable()");
        if constexpr (std::invocable<F>)
            B::enqueue(native_, std::forward<F>(callable));
    }

    /// Whether both are the same stream.
    friend bool operator==(BasicStreamRef a, BasicStreamRef b) noexcept { return a.native_ == b.native_; }
    /// Whether both are the same stream.
    friend bool operator==(BasicStreamRef a, Native b) noexcept { return a.native_ == b; }

private:
    Native native_;
};

namespace detail {

/// What makes a non-blocking stream that runs as `stream` does: by its priority, on its share of the device.
template <Backend B>
StreamOptions options_like(BasicStreamRef<B> stream) {
    StreamOptions options{.priority = stream.priority()};
    if constexpr (ShareBackend<B>)
        options.share = B::share_of(stream.get());
    return options;
}

} // namespace detail

/// Owns a stream. Move-only; a moved-from stream owns nothing: it may be assigned to, and a reference to it throws `Error`.
///
/// It belongs to the device that was current when it was made. Any thread may enqueue on it, as on the native stream.
/// Destroying it does not wait for its work on a device; on the Host backend it does, unless one of the stream's own tasks
/// destroys it.
template <Backend B>
class BasicStream {
public:
    /// `cudaStream_t` on CUDA.
    using Native = typename B::NativeStream;

    /// Makes a stream on the current device. Throws `Error`.
    explicit BasicStream(const StreamOptions& options = {}) : native_(B::create_stream(options)) {}

    /// Makes a stream of the Host backend that has no thread: the thread that enqueues work there runs it at once. For code
    /// that wants a stream while the caller already has a thread for it. Throws `Error`.
    static BasicStream make_inline(const StreamOptions& options = {}) requires requires {
        B::create_inline_stream(options);
    }
    { return BasicStream{B::create_inline_stream(options), Made{}}; }

    /// Takes over a native stream, which the result destroys.
    static BasicStream from_native_handle(Native native) noexcept { return BasicStream{native, Adopt{}}; }

    /// Takes `other`'s stream over.
    BasicStream(BasicStream&& other) noexcept : native_(std::exchange(other.native_, Native{})) {}
    /// Takes `other`'s stream over and destroys the former one.
    BasicStream& operator=(BasicStream&& other) noexcept {
        if (this != &other) {
            destroy();
            native_ = std::exchange(other.native_, Native{});
        }
        return *this;
    }
    ~BasicStream() { destroy(); }

    /// A reference, which must not outlive the stream. Not of a temporary stream, which is destroyed before it could be used.
    /// Throws `Error` for a stream that was moved from: a null handle would be the default stream on CUDA.
    BasicStreamRef<B> ref() const& { return detail::owned_by("stream", native_); }
    /// The same as `ref`.
    operator BasicStreamRef<B>() const& { return ref(); }
    /// Does not compile.
    template <class Owner = B>
    BasicStreamRef<B> ref() const&& noexcept {
        return refuse_temporary<Owner>();
    }
    /// Does not compile.
    template <class Owner = B>
    operator BasicStreamRef<B>() const&& noexcept {
        return refuse_temporary<Owner>();
    }
    /// To a foreign reference to a stream, such as `cuda::stream_ref`.
    template <detail::ForeignStreamRef<Native> T>
    requires(!std::same_as<T, BasicStreamRef<B>>) operator T() const& { return T{ref().get()}; }
    /// Does not compile.
    template <detail::ForeignStreamRef<Native> T>
    requires(!std::same_as<T, BasicStreamRef<B>>) operator T() const&& { return refuse_temporary<T>(); }
    /// The native stream, which stays this object's; null if it was moved from.
    Native get() const noexcept { return native_; }

    /// See `BasicStreamRef::wait`.
    void wait(const BasicEvent<B>& event) const { ref().wait(event); }
    /// See `BasicStreamRef::sync`.
    void sync() const { ref().sync(); }
    /// See `BasicStreamRef::is_done`.
    bool is_done() const { return ref().is_done(); }
    /// See `BasicStreamRef::device`.
    int device() const { return ref().device(); }
    /// See `BasicStreamRef::priority`.
    int priority() const { return ref().priority(); }
    /// See `BasicStreamRef::enqueue`.
    template <class F>
    void enqueue(F&& callable) const requires requires(BasicStreamRef<B> stream, F f) {
        stream.enqueue(std::forward<F>(f));
    }
    { ref().enqueue(std::forward<F>(callable)); }

    /// Gives the native stream up: the caller destroys it.
    Native release() noexcept {
        if (native_ != Native{})
            B::counts().streams.remove();
        return std::exchange(native_, Native{});
    }

private:
    struct Adopt {};
    struct Made {};
    BasicStream(Native native, Made) noexcept : native_(native) {}
    BasicStream(Native native, Adopt) noexcept : native_(native) {
        if (native_ != Native{})
            B::counts().streams.adopt();
    }

    // Not a deleted function, which could not say why.
    template <class T>
    Native refuse_temporary() const noexcept {
        static_assert(std::is_void_v<T>,
                      "sluice::BasicStream: a reference to a temporary stream would dangle; keep the stream "
                      "in a variable that outlives what refers to it");
        return native_;
    }

    void destroy() noexcept {
        if (native_ == Native{})
            return;
        // Behind an exception it may be for a semaphore that will not be signalled.
        if constexpr (detail::SemaphoreCalls<B>::there) {
            if (std::uncaught_exceptions() != 0) [[unlikely]]
                detail::SemaphoreWaits::instance().give_up(native_);
        }
        B::destroy_stream(native_);
    }

    Native native_;
};

template <Backend B>
void BasicEvent<B>::record(BasicStreamRef<B> stream) {
    B::record(detail::owned_by("event", native_), stream.get());
}

namespace detail {

/// Whether `stream` is being captured: what it is handed is recorded and does not run.
template <Backend B>
bool records(BasicStreamRef<B> stream) {
    if constexpr (requires { B::is_capturing(stream.get()); }) {
        return B::is_capturing(stream.get());
    } else {
        return false;
    }
}

} // namespace detail

/// Of the default backend.
using StreamRef = BasicStreamRef<DefaultBackend>;
/// Of the default backend.
using Stream = BasicStream<DefaultBackend>;
/// Of the Host backend.
using HostStreamRef = BasicStreamRef<Host>;
/// Of the Host backend.
using HostStream = BasicStream<Host>;
#if SLUICE_HAS_CUDA
/// Of the Cuda backend.
using CudaStreamRef = BasicStreamRef<Cuda>;
/// Of the Cuda backend.
using CudaStream = BasicStream<Cuda>;
#endif

} // namespace sluice
