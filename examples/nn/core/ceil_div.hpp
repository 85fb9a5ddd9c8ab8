/// \file
/// Division rounded up.
#pragma once

#include <type_traits>

#include <sluice/backend/config.hpp>

namespace nn {

/// The least integer that is not less than `a / b`, for `a >= 0` and `b > 0`. `a + b - 1` has to fit in `T`.
template <class T>
SLUICE_HOST_DEVICE constexpr T ceil_div(T a, std::type_identity_t<T> b) {
    return (a + b - 1) / b;
}

} // namespace nn
