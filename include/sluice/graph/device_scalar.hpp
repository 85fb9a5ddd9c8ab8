/// \file
/// A number in device memory that the host changes between launches.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <sluice/backend/event.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/memory/buffer.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

/// One value in device memory. A graph keeps the arguments that its kernels were captured with; a kernel that
/// takes `data()` instead reads what `set` put there before this launch: a learning rate, a step, a size.
///
/// Move-only; its address moves with it. A moved-from scalar may only be assigned to or destroyed. Belongs to
/// the device that was current when it was made. Not synchronised: one thread at a time. Must outlive all
/// work that reads it; destroying it waits for the copies that `set` has enqueued, and for nothing else.
///
/// \code
/// sluice::DeviceScalar<float> rate{1e-3f};
/// for (int step = 0; step < steps; ++step) {
///     rate.set(stream, schedule(step)); // not part of the graph
///     graph.run(stream, [&](sluice::StreamRef s) { update<<<blocks, threads, 0, s>>>(weights, rate.data()); });
/// }
/// \endcode
template <class T, Backend B = DefaultBackend>
class DeviceScalar {
    static_assert(std::is_trivially_copyable_v<T>,
                  "sluice::DeviceScalar: the type must be trivially copyable");

public:
    using backend = B;
    using value_type = T;

    /// Holds `initial` when the constructor returns, for which it waits. `slots` values can be on their way at
    /// once. Throws `Error` when `slots` is below one, or there is not enough memory.
    explicit DeviceScalar(T initial = {}, int slots = 8);

    DeviceScalar(DeviceScalar&&) noexcept = default;
    DeviceScalar& operator=(DeviceScalar&& other) noexcept {
        if (this != &other) {
            slots_ = std::move(other.slots_); // first: their copies write to the memory that goes next
            value_ = std::move(other.value_);
            next_ = other.next_;
        }
        return *this;
    }

    /// Gives work that is enqueued on `stream` from here on `value`; work enqueued earlier sees the earlier
    /// one. Waits only when all slots are on their way, for the oldest. Uses on several streams are ordered by
    /// whoever uses them. Throws `Error`, also while `stream` is being captured; a fault of the stream that an earlier
    /// value went to is that stream's to report, and does not keep later ones from being set.
    void set(BasicStreamRef<B> stream, T value);

    /// What the stream has come to, for which it waits. Throws `Error`, also while `stream` is being captured.
    T value_and_wait(BasicStreamRef<B> stream) const;

    /// Not of a temporary scalar, whose memory goes before anybody can use the span.
    DeviceSpan<T, B> span() & noexcept { return value_.span(); }
    DeviceSpan<const T, B> span() const& noexcept { return value_.span(); }
    void span() && = delete;
    void span() const&& = delete;
    /// Device memory, the same in the scalar's whole life.
    T* data() noexcept { return value_.data(); }
    const T* data() const noexcept { return value_.data(); }

private:
    // Pinned memory that a value leaves from.
    struct Slot {
        Slot() : value(1), sent(EventOptions{.sleep_while_waiting = true}) {}
        Slot(const Slot&) = delete;
        Slot& operator=(const Slot&) = delete;
        ~Slot() {
            try {
                sent.sync();
            } catch (...) {
                // The stream has failed, and whoever waits for it is told so.
            }
        }
        PinnedBuffer<T, B> value;
        BasicEvent<B> sent;
    };

    // Waits until the slot's copy is over, however it ended.
    static void wait_for(const Slot& slot);
    void refuse_capture(BasicStreamRef<B> stream, const char* why) const;

    DeviceBuffer<T, B> value_;
    std::vector<std::unique_ptr<Slot>> slots_;
    std::size_t next_ = 0;
};

// ---------------------------------------------------------------------------------------------------------------

template <class T, Backend B>
DeviceScalar<T, B>::DeviceScalar(T initial, int slots) : value_(1) {
    if (slots < 1)
        throw Error("a device scalar needs at least 1 slot, got " + std::to_string(slots));
    slots_.reserve(static_cast<std::size_t>(slots));
    for (int slot = 0; slot < slots; ++slot)
        slots_.push_back(std::make_unique<Slot>());
    const BasicStream<B> stream;
    slots_[0]->value[0] = initial;
    copy(stream, value_, slots_[0]->value);
    stream.sync();
}

template <class T, Backend B>
void DeviceScalar<T, B>::wait_for(const Slot& slot) {
    try {
        slot.sent.sync();
    } catch (...) {
        // Asked again, an event that has been reached throws its stream's fault, and one that has not says so.
        bool over = true;
        try {
            over = slot.sent.is_done();
        } catch (...) {
        }
        if (!over)
            throw;
    }
}

template <class T, Backend B>
void DeviceScalar<T, B>::refuse_capture(BasicStreamRef<B> stream, const char* why) const {
    if (slots_.empty())
        throw Error("the device scalar was moved from");
    if (detail::records(stream))
        throw detail::NotCapturable(why);
}

template <class T, Backend B>
void DeviceScalar<T, B>::set(BasicStreamRef<B> stream, T value) {
    refuse_capture(stream,
                   "DeviceScalar::set while the stream is being captured would bake today's value into the "
                   "graph; set it outside of the capture, before each launch");
    Slot& slot = *slots_[next_];
    wait_for(slot);
    slot.value[0] = value;
    copy(stream, value_, slot.value);
    try {
        slot.sent.record(stream);
    } catch (...) {
        // No event will tell of the copy's end, and the slot must not be written before it.
        try {
            stream.sync();
        } catch (...) {
        }
        throw;
    }
    next_ = (next_ + 1) % slots_.size();
}

template <class T, Backend B>
T DeviceScalar<T, B>::value_and_wait(BasicStreamRef<B> stream) const {
    refuse_capture(stream, "DeviceScalar::value_and_wait: nothing has a value yet while the stream is being "
                           "captured; read it after a launch");
    T value{};
    copy_and_wait(stream, std::span<T>(&value, 1), value_);
    return value;
}

} // namespace sluice
