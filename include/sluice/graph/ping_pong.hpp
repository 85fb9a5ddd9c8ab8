/// \file
/// Two buffers that change places on the device.
#pragma once

#include <cstddef>
#include <type_traits>

#include <sluice/backend/config.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/memory/buffer.hpp>

namespace sluice {

/// What work on the device knows two buffers by. Passed by value: to a kernel, or into a host task. Copies of one view
/// all see a swap.
template <class T>
class PingPongView {
public:
    /// `places` is device memory and holds the addresses of the buffer in front and of the other one, each of `size`
    /// elements. `PingPong::view` makes views.
    PingPongView(T** places, std::size_t size) noexcept : places_(places), size_(size) {}

    /// The buffer that was written last, to read.
    SLUICE_HOST_DEVICE T* front() const { return places_[0]; }
    /// The other buffer, to write.
    SLUICE_HOST_DEVICE T* back() const { return places_[1]; }
    /// Elements of each buffer.
    SLUICE_HOST_DEVICE std::size_t size() const { return size_; }

    /// Swaps for the work that comes after this, without what `PingPong::swap` enqueues. Only one thread of a kernel may
    /// call it, and neither its other threads nor concurrent work may use the view.
    SLUICE_HOST_DEVICE void swap() const {
        T* const front = places_[0];
        places_[0] = places_[1];
        places_[1] = front;
    }

private:
    T** places_;
    std::size_t size_;
};

/// Two buffers of which each iteration reads one and writes the other. Which is which is kept in device memory, so that
/// a captured iteration may be replayed any number of times, odd ones included, or loop on the device.
///
/// Move-only; a moved-from object may be assigned to, and has no buffers and no `view`: what uses them throws `Error`. Belongs to the device that was current when it
/// was made. Not synchronised: one thread at a time, and the caller orders work on several streams.
/// Must outlive all work and graphs that use it or its views.
///
/// \code
/// sluice::PingPong<float> x{n}; // the first buffer is in front
/// sluice::copy(stream, x.first(), start);
/// sluice::GraphCapture<> graph;
/// graph.run(stream, [&](sluice::StreamRef s) {
///     sluice::while_nonzero(s, again, [&](sluice::StreamRef body) {
///         jacobi<<<blocks, threads, 0, body>>>(x.view()); // writes view.back()[i] from view.front()
///         x.swap(body);
///         decide<<<1, 1, 0, body>>>(x.view(), again.setter(body)); // compares both
///     });
/// });
/// sluice::copy_and_wait(stream, result, x.front_and_wait(stream));
/// \endcode
template <class T, Backend B = DefaultBackend>
class PingPong {
    static_assert(
        std::is_same_v<T, std::remove_cvref_t<T>>,
        "sluice::PingPong: elements are neither const nor references, since each buffer is written in turn");

public:
    using backend = B;    ///< Where the buffers live.
    using value_type = T; ///< The elements' type.

    /// Owns two buffers of `count` elements, whose values are undefined at first. Waits until the device knows them.
    /// Throws `Error` when `count` is 0, or there is not enough memory.
    explicit PingPong(std::size_t count) : own_{Buffer(count), Buffer(count)} {
        keep(own_[0].span(), own_[1].span());
    }

    /// Swaps two buffers of the caller's, `front` being in front at first, which must outlive the object. Waits as above.
    /// Throws `Error` when they are empty, of different sizes, or overlap.
    PingPong(DeviceSpan<T, B> front, DeviceSpan<T, B> back) { keep(front, back); }

    /// For kernels and host tasks. Valid as long as the object lives, wherever it is moved to.
    PingPongView<T> view() { return {detail::owned_by("ping-pong pair", places_.data()), first_.size()}; }

    /// Swaps front and back for the work that is enqueued on `stream` from here on: three copies of a pointer on the
    /// device, which may be captured. Throws `Error`; nothing has been swapped then.
    void swap(BasicStreamRef<B> stream);

    /// Puts the first buffer in front for the work that is enqueued on `stream` from here on. May be captured. Throws
    /// `Error`.
    void reset(BasicStreamRef<B> stream);

    /// For kernels and libraries that take plain pointers: calls `step(stream, from, to)` `count` times, with spans of the buffers,
    /// and it enqueues what reads `from` and writes `to`. Each `from` is what the step before has written, and the first one
    /// `first()`. Behind an odd number of steps the result is copied, so that it is in `first()` again, which is in front then:
    /// what is captured may be replayed, or loop on the device, any number of times. Throws `Error` for a negative count, and
    /// what `step` throws.
    template <class Step>
    void iterate(BasicStreamRef<B> stream, int count, Step&& step);

    /// The buffer that is in front once `stream` has got here, for which it waits. Throws `Error`, also while `stream` is
    /// being captured.
    DeviceSpan<T, B> front_and_wait(BasicStreamRef<B> stream) const;

    /// The buffer that was in front at first, wherever it is now.
    DeviceSpan<T, B> first() const noexcept { return places_.empty() ? DeviceSpan<T, B>() : first_; }
    /// The other buffer, wherever it is now.
    DeviceSpan<T, B> second() const noexcept { return places_.empty() ? DeviceSpan<T, B>() : second_; }
    /// Elements of each buffer.
    std::size_t size() const noexcept { return first().size(); }

private:
    using Buffer = DeviceBuffer<T, B>;
    // What the places on the device are for. Those at home never change.
    static constexpr std::size_t front_place = 0, back_place = 1, spare_places = 2, home_places = 4,
                                 places = 6;

    void keep(DeviceSpan<T, B> first, DeviceSpan<T, B> second);
    void require_places(BasicStreamRef<B> stream, const char* call) const;
    void move(BasicStreamRef<B> stream, std::size_t to, std::size_t from, std::size_t count);

    Buffer own_[2]; // none where the buffers are the caller's
    DeviceSpan<T, B> first_, second_;
    DeviceBuffer<T*, B> places_;
};

} // namespace sluice

#include <sluice/graph/detail/ping_pong.inl>
