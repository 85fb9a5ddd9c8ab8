// The bodies of device_scalar.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <sluice/backend/detail/device_event.hpp>
#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/device_scalar.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

template <class T, Backend B>
struct DeviceScalar<T, B>::Slot {
    Slot() : value(1), sent(EventOptions{.sleep_while_waiting = true}) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() { sent.settle(); }

    PinnedBuffer<T, B> value;
    detail::DeviceEvent<B> sent;
};

template <class T, Backend B>
DeviceScalar<T, B>::DeviceScalar(T initial, int slots) : value_(1) {
    detail::require_within("DeviceScalar: the number of slots", slots, 1, detail::most_of_option);
    slots_.reserve(static_cast<std::size_t>(slots));
    for (int slot = 0; slot < slots; ++slot)
        slots_.push_back(detail::make_owned<Slot>());
    const BasicStream<B> stream;
    slots_[0]->value[0] = initial;
    copy(stream, value_, slots_[0]->value);
    stream.sync();
}

template <class T, Backend B>
DeviceScalar<T, B>& DeviceScalar<T, B>::operator=(DeviceScalar&& other) noexcept {
    if (this != &other) {
        slots_ = std::move(other.slots_); // first: their copies write to the memory that goes next
        value_ = std::move(other.value_);
        next_ = other.next_;
    }
    return *this;
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
void DeviceScalar<T, B>::require_usable(BasicStreamRef<B> stream, const char* call, const char* why) const {
    if (slots_.empty())
        detail::throw_moved_from("device scalar");
    detail::require_same_device(stream, call, "the scalar", value_.device());
    if (detail::records(stream))
        throw detail::NotCapturable(std::string(call) + why);
}

template <class T, Backend B>
void DeviceScalar<T, B>::set(BasicStreamRef<B> stream, T value) {
    require_usable(stream, "DeviceScalar::set",
                   " while the stream is being captured would bake today's value into the graph; set it "
                   "outside of the capture, before each launch");
    Slot& slot = *slots_[next_];
    wait_for(slot);
    slot.value[0] = value;
    copy(stream, value_, slot.value);
    detail::or_synced(stream, [&] { slot.sent.record(stream); });
    next_ = (next_ + 1) % slots_.size();
}

template <class T, Backend B>
T DeviceScalar<T, B>::value_and_wait(BasicStreamRef<B> stream) const {
    require_usable(stream, "DeviceScalar::value_and_wait",
                   ": nothing has a value yet while the stream is being captured; read it after a launch");
    T value{};
    copy_and_wait(stream, std::span<T>(&value, 1), value_);
    return value;
}

} // namespace sluice
