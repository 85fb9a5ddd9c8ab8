/// \file
/// Two buffers that change places on the device.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

/// What work on the device knows two buffers by. Passed by value: to a kernel, or into a host task. Copies of one view
/// all see a swap.
template <class T>
class PingPongView {
public:
    PingPongView(T** places, std::size_t size) noexcept : places_(places), size_(size) {}

    /// The buffer that was written last, to read, and the other one, to write.
    SLUICE_HOST_DEVICE T* front() const { return places_[0]; }
    SLUICE_HOST_DEVICE T* back() const { return places_[1]; }
    /// The elements of each.
    SLUICE_HOST_DEVICE std::size_t size() const { return size_; }

    /// Swaps for the work that comes after this. From one thread of a kernel whose other threads, and other work that runs
    /// beside it, do not use the view: where there is such a kernel, it saves what `PingPong::swap` enqueues.
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
/// Move-only; a moved-from object may only be assigned to or destroyed. Belongs to the device that was current when it
/// was made. Not synchronised: one thread at a time, and work on several streams is ordered by whoever enqueues it.
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
public:
    using backend = B;
    using value_type = T;

    /// Owns two buffers of `count` elements, whose values are undefined at first. Waits until the device knows them.
    /// Throws `Error` when `count` is 0, or there is not enough memory.
    explicit PingPong(std::size_t count) : own_{Buffer(count), Buffer(count)} {
        keep(own_[0].span(), own_[1].span());
    }

    /// Swaps two buffers of the caller's, `front` being in front at first, which must outlive the object. Waits as above.
    /// Throws `Error` when they are empty, of different sizes, or the same.
    PingPong(DeviceSpan<T, B> front, DeviceSpan<T, B> back) { keep(front, back); }

    /// For kernels and host tasks. Valid as long as the object lives, wherever it is moved to.
    PingPongView<T> view() noexcept { return {places_.data(), first_.size()}; }

    /// Swaps front and back for the work that is enqueued on `stream` from here on: three copies of a pointer on the
    /// device, which may be captured. Throws `Error`.
    void swap(BasicStreamRef<B> stream) {
        move(stream, spare_place, front_place, 1);
        move(stream, front_place, back_place, 1);
        move(stream, back_place, spare_place, 1);
    }

    /// Puts the first buffer in front for the work that is enqueued on `stream` from here on. May be captured. Throws
    /// `Error`.
    void reset(BasicStreamRef<B> stream) { move(stream, front_place, home_places, 2); }

    /// The buffer that is in front once `stream` has got here, for which it waits. Throws `Error`, also while `stream` is
    /// being captured.
    DeviceSpan<T, B> front_and_wait(BasicStreamRef<B> stream) const {
        require_places();
        if (detail::records(stream)) {
            throw detail::NotCapturable(
                "PingPong::front_and_wait: nothing is in front yet while the stream is being "
                "captured; ask after a launch");
        }
        T* seen = nullptr;
        copy_and_wait(stream, std::span<T*>(&seen, 1), places_.span().first(1));
        return seen == first_.data() ? first_ : second_;
    }

    /// The two buffers, wherever they are now.
    DeviceSpan<T, B> first() const noexcept { return first_; }
    DeviceSpan<T, B> second() const noexcept { return second_; }
    /// The elements of each.
    std::size_t size() const noexcept { return first_.size(); }

private:
    using Buffer = DeviceBuffer<T, B>;
    // What the places on the device are for. Those at home never change.
    static constexpr std::size_t front_place = 0, back_place = 1, spare_place = 2, home_places = 3,
                                 places = 5;

    void keep(DeviceSpan<T, B> first, DeviceSpan<T, B> second) {
        if (first.empty() || first.size() != second.size() || first.data() == second.data()) {
            throw Error("a ping-pong pair needs two buffers of as many elements, and at least 1; got " +
                        std::to_string(first.size()) + " and " + std::to_string(second.size()) +
                        (first.data() == second.data() && !first.empty() ? ", at the same place" : ""));
        }
        first_ = first;
        second_ = second;
        T* const values[places] = {first.data(), second.data(), nullptr, first.data(), second.data()};
        places_ = DeviceBuffer<T*, B>(places);
        const BasicStream<B> stream;
        copy_and_wait(stream, places_, std::span<T* const>(values));
    }
    void require_places() const {
        if (places_.empty())
            throw Error("the ping-pong pair was moved from");
    }
    void move(BasicStreamRef<B> stream, std::size_t to, std::size_t from, std::size_t count) {
        require_places();
        copy(stream, places_.span().subspan(to, count), places_.span().subspan(from, count));
    }

    Buffer own_[2]; // none where the buffers are the caller's
    DeviceSpan<T, B> first_, second_;
    DeviceBuffer<T*, B> places_;
};

} // namespace sluice
