// The bodies of ping_pong.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <sluice/graph/detail/not_capturable.hpp>
#include <sluice/graph/ping_pong.hpp>
#include <sluice/memory/copy.hpp>

namespace sluice {

template <class T, Backend B>
void PingPong<T, B>::swap(BasicStreamRef<B> stream) {
    require_places(stream, "PingPong::swap");
    move(stream, spare_places, back_place, 1);
    move(stream, spare_places + 1, front_place, 1);
    // Both at once, so that a swap that fails half way has changed nothing.
    move(stream, front_place, spare_places, 2);
}

template <class T, Backend B>
void PingPong<T, B>::reset(BasicStreamRef<B> stream) {
    require_places(stream, "PingPong::reset");
    move(stream, front_place, home_places, 2);
}

template <class T, Backend B>
template <class Step>
void PingPong<T, B>::iterate(BasicStreamRef<B> stream, int count, Step&& step) {
    static_assert(std::is_invocable_v<Step&, BasicStreamRef<B>, DeviceSpan<T, B>, DeviceSpan<T, B>>,
                  "sluice::PingPong::iterate: the step must be callable as step(stream, from, to), with two "
                  "DeviceSpans");
    require_places(stream, "PingPong::iterate");
    detail::require_callable("PingPong::iterate: the step", step);
    if (count < 0)
        throw Error("PingPong::iterate: " + detail::counted_were(count, "step") +
                    " asked for; expected 0 or more");
    for (int i = 0; i < count; ++i)
        step(stream, i % 2 == 0 ? first_ : second_, i % 2 == 0 ? second_ : first_);
    if (count % 2 != 0)
        copy(stream, first_, second_);
    reset(stream);
}

template <class T, Backend B>
DeviceSpan<T, B> PingPong<T, B>::front_and_wait(BasicStreamRef<B> stream) const {
    require_places(stream, "PingPong::front_and_wait");
    if (detail::records(stream)) {
        throw detail::NotCapturable("PingPong::front_and_wait: nothing is in front yet while the stream is "
                                    "being captured; ask after a launch");
    }
    T* seen = nullptr;
    copy_and_wait(stream, std::span<T*>(&seen, 1), places_.span().first(1));
    return seen == first_.data() ? first_ : second_;
}

template <class T, Backend B>
void PingPong<T, B>::keep(DeviceSpan<T, B> first, DeviceSpan<T, B> second) {
    detail::require_memory("a ping-pong pair", "the first buffer", detail::piece_of_span(first));
    detail::require_memory("a ping-pong pair", "the second buffer", detail::piece_of_span(second));
    const bool same = first.data() == second.data() && !first.empty();
    const bool overlap =
        detail::overlap({first.data(), first.size(), sizeof(T)}, {second.data(), second.size(), sizeof(T)});
    if (first.empty() || first.size() != second.size() || same || overlap) {
        throw Error("a ping-pong pair needs two buffers of as many elements, and at least 1; got " +
                    std::to_string(first.size()) + " and " + std::to_string(second.size()) +
                    (same      ? ", at the same place"
                     : overlap ? ", which overlap"
                               : ""));
    }
    first_ = first;
    second_ = second;
    T* const values[places] = {first.data(), second.data(), nullptr, nullptr, first.data(), second.data()};
    places_ = DeviceBuffer<T*, B>(places);
    const BasicStream<B> stream;
    copy_and_wait(stream, places_, std::span<T* const>(values));
}

template <class T, Backend B>
void PingPong<T, B>::require_places(BasicStreamRef<B> stream, const char* call) const {
    if (places_.empty())
        detail::throw_moved_from("ping-pong pair");
    detail::require_same_device(stream, call, "the pair", places_.device());
}

template <class T, Backend B>
void PingPong<T, B>::move(BasicStreamRef<B> stream, std::size_t to, std::size_t from, std::size_t count) {
    copy(stream, places_.span().subspan(to, count), places_.span().subspan(from, count));
}

} // namespace sluice
