// The bytes of a value that stand for nothing: between its members, and behind the last one.
#pragma once

#include <type_traits>

// Whether the compiler can make them 0.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define SLUICE_CLEARS_PADDING 1
#endif
#endif
#ifndef SLUICE_CLEARS_PADDING
#define SLUICE_CLEARS_PADDING 0
#endif

namespace sluice::detail {

/// Makes them 0, where there are any and the compiler can, so that equal values have equal bytes.
template <class T>
void clear_padding(T& value) noexcept {
#if SLUICE_CLEARS_PADDING
    if constexpr (std::is_trivially_copyable_v<T> && !std::is_scalar_v<T> &&
                  !std::has_unique_object_representations_v<T>)
        __builtin_clear_padding(__builtin_addressof(value));
#else
    (void)value;
#endif
}

} // namespace sluice::detail
