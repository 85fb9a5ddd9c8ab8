// An exception of enqueued work, as an `Error`.
#pragma once

#include <exception>
#include <string>

#include <sluice/backend/error.hpp>

namespace sluice::detail {

/// Throws an `Error` of `what` and the exception's own text, with the exception nested in it; nothing for null.
SLUICE_ALWAYS_INLINE inline void throw_failure(const char* what, const std::exception_ptr& failure) {
    if (failure == nullptr)
        return;
    try {
        std::rethrow_exception(failure);
    } catch (...) {
        std::throw_with_nested(Error(std::string(what) + words_of_handled()));
    }
}

} // namespace sluice::detail
