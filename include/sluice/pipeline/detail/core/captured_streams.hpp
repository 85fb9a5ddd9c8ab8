// Streams that are being captured: what a pipeline handed them would be recorded, and not run.
#pragma once

#include <string>

#include <sluice/backend/stream.hpp>
#include <sluice/graph/detail/not_capturable.hpp>

namespace sluice::detail {

/// Whether `stream` is being captured, as far as it can be told: of a device that is lost the call itself tells.
template <Backend B>
bool is_captured(BasicStreamRef<B> stream) noexcept {
    try {
        return records(stream);
    } catch (...) {
        return false;
    }
}

/// Work that is captured with such a call in it runs eagerly.
[[noreturn]] void throw_captured(const char* call, const std::string& what);
#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void throw_captured(const char* call, const std::string& what) {
    throw NotCapturable(std::string(call) + ": " + what +
                        " is being captured, and a pipeline would not know of the replays; expected a "
                        "stream that is not: call it before the capture begins, or after it has ended");
}
#endif

} // namespace sluice::detail
