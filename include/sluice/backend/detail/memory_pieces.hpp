// What is asked of memory that a caller names by an address and a number of elements, before work on it is enqueued: that it is
// there, that its bytes can be counted, and that what is written is not read besides.
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

/// The elements of a span, of a backend or of the standard library.
template <class Span>
SLUICE_ALWAYS_INLINE inline Piece piece_of_span(const Span& span) noexcept {
    return {span.data(), span.size(), sizeof(*span.data())};
}

/// Bytes up to the last element's end, or to the last address where there are said to be more.
inline std::size_t addressable_bytes(const Piece& piece) noexcept {
    const std::uintptr_t behind = ~std::uintptr_t{0} - reinterpret_cast<std::uintptr_t>(piece.data);
    return piece.count > behind / piece.size ? behind : piece.count * piece.size;
}

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
/// That `what`, which `call` was given, is a null pointer and a size, or goes on behind the last address.
[[noreturn]] void throw_no_memory(CallName call, const char* what, const Piece& piece);

/// Throws `Error` where there is no memory for elements that are said to be there. Behind it their bytes can be counted.
SLUICE_ALWAYS_INLINE inline void require_memory(CallName call, const char* what, const Piece& piece) {
    const std::uintptr_t behind = ~std::uintptr_t{0} - reinterpret_cast<std::uintptr_t>(piece.data);
    if (piece.count != 0 && (piece.data == nullptr || piece.count > behind / piece.size)) [[unlikely]]
        throw_no_memory(call, what, piece);
}

#if SLUICE_HAS_COMMON_BODIES
SLUICE_BODY void throw_overlap(CallName call, const char* one, const char* other,
                               const std::string& instead) {
    throw Error(std::string(call.scope) + call.name + ": " + one + " and " + other + " overlap" + instead);
}
SLUICE_BODY void throw_no_memory(CallName call, const char* what, const Piece& piece) {
    const bool is_null = piece.data == nullptr;
    throw Error(std::string(call.scope) + call.name + ": for " + what + " a " + (is_null ? "null " : "") +
                "pointer to " + counted(piece.count, "element") +
                (is_null ? "" : " of " + counted(piece.size, "byte") + " each") +
                " was given; expected memory that holds as many");
}
#endif

} // namespace sluice::detail
