/// \file
/// As std::make_shared, of which a compiler makes more functions for each type.
#pragma once

#include <sluice/backend/config.hpp>

#include <memory>

namespace sluice::detail {

/// As std::make_shared, with a block of memory for the value and another for its count.
template <class T, class... Args>
SLUICE_ALWAYS_INLINE inline std::shared_ptr<T> shared_of(Args&&... args) {
    return std::shared_ptr<T>(new T(static_cast<Args&&>(args)...));
}

} // namespace sluice::detail
