// What a source or a pipeline of a checked backend tells of what its slots own, and what stress does to that.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include <sluice/backend/detail/checked/interface.hpp>
#include <sluice/backend/stream.hpp>
#include <sluice/pipeline/detail/checked/visit_memory.hpp>

namespace sluice::detail {

/// A slot maker that notes what each slot allocates.
template <class Make>
class ListenedMaker {
public:
    explicit ListenedMaker(Make& make) : make_(make) {}
    decltype(auto) operator()(int slot) {
        listening_.begin_list();
        return make_(slot);
    }
    const List<checked::Range>& list(std::size_t slot) { return listening_.list(slot + 1); }

private:
    Make& make_;
    checked::Listening listening_;
};

/// Tells which memory an object has: what was allocated when it was made, and what it shows.
template <class T>
void tell_of_object(const T& object, List<checked::Range> memory, const std::string& of, std::size_t slot) {
    const auto add = [&](const checked::Range& range, bool) { memory.push_back(range); };
    visit_memory(object, add);
    checked::object_made(&object, memory.data(), memory.size(), of.c_str(), static_cast<int>(slot));
}

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
