/// \file
/// What stress does to the slots of checked pipelines and sources.
#pragma once

#include <cstring>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// All bytes: NaN in floating point, -1 in integers.
inline constexpr int poison_byte = 0xFF;

/// Poisons what `object` owns in the order of `stream`: device memory, and with `pinned` that too.
template <Backend B>
void poison(const void* object, BasicStreamRef<B> stream, bool pinned) {
    const checked::BlindScope blind;
    for (const checked::Range& range : checked::memory_of(object)) {
        if (pinned || !range.on_host)
            B::fill_bytes(const_cast<void*>(range.begin), poison_byte, range.bytes, stream.get());
    }
    checked::count_poisoning();
}
/// Poisons the pinned memory that `object` owns, now, and says whether there is other memory.
template <Backend B>
bool poison_on_host(const void* object) requires IsChecked<B>::value {
    bool others = false;
    for (const checked::Range& range : checked::memory_of(object)) {
        others = others || !range.on_host;
        if (range.on_host)
            std::memset(const_cast<void*>(range.begin), poison_byte, range.bytes);
    }
    checked::count_poisoning();
    return others;
}
/// Poisons all that `object` owns, and waits for it.
template <Backend B>
void poison_and_wait(const void* object, bool pinned = true) {
    if (pinned && !poison_on_host<B>(object))
        return;
    const BasicStream<B> stream;
    poison(object, stream.ref(), false);
    stream.sync();
}

} // namespace sluice::detail
