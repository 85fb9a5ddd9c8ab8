// What is asked of memory that a caller names by an address and a number of elements, before work on it is enqueued: that it is
// there, and that what is written is not read besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <sluice/backend/detail/same_device.hpp>
#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// Elements one behind the other. Their number is not multiplied by their size: a view may say any number.
struct Piece {
    const void* data;
    std::size_t count;
    std::size_t size = 1; // bytes of an element
};

/// Whether two pieces have a byte in common.
SLUICE_ALWAYS_INLINE inline bool overlap(const Piece& a, const Piece& b) noexcept {
    if (a.count == 0 || b.count == 0)
        return false;
    const auto begin_a = reinterpret_cast<std::uintptr_t>(a.data);
    const auto begin_b = reinterpret_cast<std::uintptr_t>(b.data);
    return begin_a <= begin_b ? (begin_b - begin_a) / a.size < a.count
                              : (begin_a - begin_b) / b.size < b.count;
}
/// Whether they have, and do not hold the same elements at the same places: work that goes element by element is in place there.
SLUICE_ALWAYS_INLINE inline bool overlap_in_part(const Piece& a, const Piece& b) noexcept {
    return overlap(a, b) && (a.data != b.data || a.size != b.size);
}

/// That `one` and `other`, what `call` was given, overlap, and `instead`, what was expected.
[[noreturn]] void throw_overlap(CallName call, const char* one, const char* other,
                                const std::string& instead);
/// That `what`, which `call` was given, is a null pointer and a size.
[[noreturn]] void throw_no_memory(CallName call, const char* what, std::size_t count);

/// Throws `Error` where there is no memory for elements that are said to be there.
SLUICE_ALWAYS_INLINE inline void require_memory(CallName call, const char* what, const void* data,
                                                std::size_t count) {
    if (data == nullptr && count != 0) [[unlikely]]
        throw_no_memory(call, what, count);
}

#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void throw_overlap(CallName call, const char* one, const char* other,
                               const std::string& instead) {
    throw Error(std::string(call.scope) + call.name + ": " + one + " and " + other + " overlap" + instead);
}
SLUICE_BODY void throw_no_memory(CallName call, const char* what, std::size_t count) {
    throw Error(std::string(call.scope) + call.name + ": for " + what + " a null pointer to " +
                counted(count, "element") + " was given; expected memory that holds as many");
}
#endif

} // namespace sluice::detail
