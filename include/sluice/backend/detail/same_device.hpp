// What is used together must belong to one device.
#pragma once

#include <string>

#include <sluice/backend/error.hpp>
#include <sluice/backend/stream.hpp>

namespace sluice::detail {

/// `what` and `other` name the two, `what` with the call before it.
[[noreturn]] void throw_other_device(const std::string& what, int device, const std::string& other,
                                     int others);

/// Whether there is more than one device, which never changes.
template <Backend B>
bool several_devices() {
    static const bool several = B::device_count() > 1;
    return several;
}

/// A function's name, in two parts for those that share the first.
struct CallName {
    CallName(const char* whole) noexcept : name(whole) {}
    CallName(const char* first, const char* second) noexcept : scope(first), name(second) {}
    const char* scope = "";
    const char* name;
};

/// That the stream of `call` is of the device `streams`, and `what` of another.
[[noreturn]] void throw_other_stream(CallName call, int streams, const char* what, int device);

template <Backend B>
void throw_unless_device_of(BasicStreamRef<B> stream, CallName call, const char* what, int device) {
    if (const int streams = stream.device(); streams != device)
        throw_other_stream(call, streams, what, device);
}

/// Throws `Error` where `stream`, which `call` was given, belongs to another device than `what`. Asks for the stream's only
/// where there are several.
template <Backend B>
SLUICE_ALWAYS_INLINE inline void require_same_device(BasicStreamRef<B> stream, CallName call,
                                                     const char* what, int device) {
    if (several_devices<B>()) [[unlikely]]
        throw_unless_device_of(stream, call, what, device);
}

/// The device on which memory is allocated in the order of `stream`.
template <Backend B>
int device_of_memory(BasicStreamRef<B> stream) {
    return several_devices<B>() ? stream.device() : B::current_device();
}

#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void throw_other_device(const std::string& what, int device, const std::string& other,
                                    int others) {
    throw Error(what + " belongs to device " + std::to_string(device) + ", " + other + " to device " +
                std::to_string(others) + "; both must be the same device's");
}
SLUICE_BODY void throw_other_stream(CallName call, int streams, const char* what, int device) {
    throw_other_device(std::string(call.scope) + call.name + ": the stream", streams, what, device);
}
#endif

} // namespace sluice::detail
